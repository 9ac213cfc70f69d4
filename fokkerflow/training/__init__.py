"""How the weights of a flow are found: the training law, collocation points, two trainers, and what comes of them."""

from fokkerflow.training.certificate import Certificate, certify
from fokkerflow.training.collocation import Conditions, Gaps, Sequence, points, sequence_for
from fokkerflow.training.container import FileError
from fokkerflow.training.fit import Progress, TrainingError, fit
from fokkerflow.training.gauss_newton import GaussNewton, Info, State, iterate, start
from fokkerflow.training.law import Law, Marginal, TruncatedNormal, Uniform
from fokkerflow.training.model_reference import ModelMismatchError
from fokkerflow.training.residual import Point, collocation_point, residual
from fokkerflow.training.trained import Record, Trained

__all__ = [
    "Certificate", "Conditions", "FileError", "Gaps", "GaussNewton", "Info", "Law", "Marginal", "ModelMismatchError", "Point",
    "Progress", "Record", "Sequence", "State", "Trained", "TrainingError", "TruncatedNormal", "Uniform", "certify",
    "collocation_point", "fit", "iterate", "points", "residual", "sequence_for", "start",
]  # fmt: skip
