"""How the weights of a flow are found: the training law, collocation points, and space-time Gauss-Newton."""

from fokkerflow.training.collocation import Conditions, Gaps, Sequence, points, sequence_for
from fokkerflow.training.gauss_newton import GaussNewton, Info, State, iterate, start
from fokkerflow.training.law import Law, Marginal, TruncatedNormal, Uniform
from fokkerflow.training.residual import Point, collocation_point, residual

__all__ = [
    "Conditions", "Gaps", "GaussNewton", "Info", "Law", "Marginal", "Point", "Sequence", "State", "TruncatedNormal", "Uniform",
    "collocation_point", "iterate", "points", "residual", "sequence_for", "start",
]  # fmt: skip
