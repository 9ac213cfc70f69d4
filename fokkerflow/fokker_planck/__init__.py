"""The Fokker-Planck equation of an SDE, by automatic differentiation from drift and covariance alone."""

from fokkerflow.fokker_planck.flux import flux, flux_through_face
from fokkerflow.fokker_planck.operator import Coefficients, adjoint, coefficients, log_adjoint, log_residual

__all__ = ["Coefficients", "adjoint", "coefficients", "flux", "flux_through_face", "log_adjoint", "log_residual"]
