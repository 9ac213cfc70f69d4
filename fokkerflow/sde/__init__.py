"""The model: drift, covariance, domain, parameters; its simulation and moments; the data observed from it."""

from fokkerflow.sde.constraint import Constraint as Constraint
from fokkerflow.sde.constraint import ConstraintError as ConstraintError
from fokkerflow.sde.domain import Domain as Domain
from fokkerflow.sde.functions import from_functions as from_functions
from fokkerflow.sde.model import SDE as SDE
from fokkerflow.sde.models import BDFS as BDFS
from fokkerflow.sde.models import CIR as CIR
from fokkerflow.sde.models import GBM as GBM
from fokkerflow.sde.models import MODELS as MODELS
from fokkerflow.sde.models import OU as OU
from fokkerflow.sde.models import SVCEV as SVCEV
from fokkerflow.sde.models import DoubleWell as DoubleWell
from fokkerflow.sde.models import Heston as Heston
from fokkerflow.sde.models import Jacobi as Jacobi
from fokkerflow.sde.models import SeasonalOU as SeasonalOU
from fokkerflow.sde.moments import moments as moments
from fokkerflow.sde.series import Series as Series
from fokkerflow.sde.simulate import simulate as simulate
from fokkerflow.sde.simulate import simulate_paths as simulate_paths
