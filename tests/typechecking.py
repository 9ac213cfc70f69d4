"""Shapes and types of the numerical kernels are checked at run time in tests (jaxtyping and beartype).

Modules whose functions take whatever a user passes in check that themselves, with better messages, and are left out.
"""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int may stand for a float

CHECKED = [
    "fokkerflow.sde.polynomial",
    "fokkerflow.sde.closure",
    "fokkerflow.sde.linalg",
    "fokkerflow.fokker_planck.operator",
    "fokkerflow.flow",
    "fokkerflow.training",
    "fokkerflow.densities.special",
    "fokkerflow.densities.gaussian",
    "fokkerflow.densities.cir",
    "fokkerflow.densities.heston",
    "fokkerflow.inference.slices",
]
