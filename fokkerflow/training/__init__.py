"""How the weights of a flow are found: the training law, collocation points, three trainers, and what comes of them."""

from fokkerflow.training.boundary_flux import BoundaryFlux, boundary_flux
from fokkerflow.training.certificate import Certificate, certify
from fokkerflow.training.collocation import Conditions, Gaps, Sequence, points, sequence_for
from fokkerflow.training.container import FileError
from fokkerflow.training.errors import TrainingError
from fokkerflow.training.fit import Progress, fit
from fokkerflow.training.galerkin_settings import NeuralGalerkin
from fokkerflow.training.gauss_newton import GaussNewton, Info, State, iterate, start
from fokkerflow.training.law import Law, LogUniform, Marginal, ShareOfRange, TruncatedNormal, Uniform
from fokkerflow.training.maximum_likelihood import MaximumLikelihood
from fokkerflow.training.model_reference import ModelMismatchError
from fokkerflow.training.neural_galerkin import MarchError
from fokkerflow.training.residual import Point, collocation_point, residual
from fokkerflow.training.theta_path import ThetaPath
from fokkerflow.training.trained import Record, Trained

__all__ = [
    "BoundaryFlux", "Certificate", "Conditions", "FileError", "Gaps", "GaussNewton", "Info", "Law", "LogUniform", "MarchError",
    "Marginal", "MaximumLikelihood", "ModelMismatchError", "NeuralGalerkin", "Point", "Progress", "Record", "Sequence",
    "ShareOfRange", "State", "ThetaPath", "Trained", "TrainingError", "TruncatedNormal", "Uniform", "boundary_flux", "certify",
    "collocation_point", "fit", "iterate", "points", "residual", "sequence_for", "start",
]  # fmt: skip
