"""The models that come with the package: drift, covariance, domain and constraint of each, nothing else."""

from __future__ import annotations

import jax.numpy as jnp

from fokkerflow.sde.constraint import Constraint
from fokkerflow.sde.domain import POSITIVE, REAL, UNIT_INTERVAL
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State

_CORRELATION = Constraint("-1 < rho < 1")


class OU(SDE):
    """Ornstein-Uhlenbeck (Vasicek): ``dX = kappa (mean - X) dt + sigma dW``."""

    name = "ou"
    states = {"x": REAL}
    parameters = ("kappa", "mean", "sigma")
    constraints = (Constraint("kappa > 0"), Constraint("sigma > 0"))
    typical = {"kappa": 2.0, "mean": 0.5, "sigma": 0.3}
    start = (0.5,)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        kappa, mean, _ = p
        return kappa * (mean - x)

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        return jnp.array([[p[2] ** 2]])


class SeasonalOU(SDE):
    """Ornstein-Uhlenbeck around a yearly cycle: ``dX = kappa (mean + amplitude cos(2 pi (t - phase)) - X) dt + sigma dW``.

    The one shipped model whose drift depends on time.
    """

    name = "seasonal-ou"
    states = {"x": REAL}
    parameters = ("kappa", "mean", "amplitude", "phase", "sigma")
    constraints = (Constraint("kappa > 0"), Constraint("sigma > 0"))
    typical = {"kappa": 2.0, "mean": 0.5, "amplitude": 0.4, "phase": 0.1, "sigma": 0.3}
    start = (0.5,)
    autonomous = False

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        kappa, mean, amplitude, phase, _ = p
        return kappa * (mean + amplitude * jnp.cos(2 * jnp.pi * (t - phase)) - x)

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        return jnp.array([[p[4] ** 2]])


class GBM(SDE):
    """Geometric Brownian motion (Black-Scholes): ``dS = mu S dt + sigma S dW``."""

    name = "gbm"
    states = {"s": POSITIVE}
    parameters = ("mu", "sigma")
    constraints = (Constraint("sigma > 0"),)
    typical = {"mu": 0.05, "sigma": 0.2}
    start = (1.0,)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        return p[0] * x

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        return ((p[1] * x) ** 2)[None]


class CIR(SDE):
    """Cox-Ingersoll-Ross: ``dV = beta (alpha - V) dt + sigma sqrt(V) dW``."""

    name = "cir"
    states = {"v": POSITIVE}
    parameters = ("alpha", "beta", "sigma")
    constraints = (
        Constraint("alpha > 0"),
        Constraint("beta > 0"),
        Constraint("0 < sigma < sqrt(2*alpha*beta)", "strict Feller condition: v never reaches 0"),
    )
    typical = {"alpha": 0.1, "beta": 3.0, "sigma": 0.25}
    start = (0.1,)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        alpha, beta, _ = p
        return beta * (alpha - x)

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        return (p[2] ** 2 * x)[None]


class Heston(SDE):
    """Heston's stochastic volatility model, paper section 5.1.

    ``dV = beta (alpha - V) dt + sigma sqrt(V) dW``,
    ``dY = (mu - V/2) dt + sqrt(V) (rho dW + sqrt(1 - rho^2) dB)``; v is the variance, y the log price.
    """

    name = "heston"
    states = {"v": POSITIVE, "y": REAL}
    parameters = ("alpha", "beta", "sigma", "mu", "rho")
    constraints = (*CIR.constraints, _CORRELATION)
    typical = {"alpha": 0.1, "beta": 3.0, "sigma": 0.25, "mu": 0.05, "rho": -0.8}
    start = (0.1, 0.0)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        alpha, beta, _, mu, _ = p
        v, _ = x
        return jnp.array([beta * (alpha - v), mu - v / 2])

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        _, _, sigma, _, rho = p
        v, _ = x
        return v * jnp.array([[sigma**2, rho * sigma], [rho * sigma, 1.0]])


class SVCEV(SDE):
    """Stochastic volatility with constant elasticity of variance, paper section 5.2; not affine.

    Heston's model with ``sigma V^gamma dW`` as the noise of the variance, ``0.5 <= gamma <= 1``.
    """

    name = "svcev"
    states = {"v": POSITIVE, "y": REAL}
    parameters = ("alpha", "beta", "sigma", "mu", "rho", "gamma")
    constraints = (*Heston.constraints, Constraint("0.5 <= gamma <= 1"))
    typical = {**Heston.typical, "gamma": 1.0}
    start = (0.1, 0.0)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        alpha, beta, _, mu, _, _ = p
        v, _ = x
        return jnp.array([beta * (alpha - v), mu - v / 2])

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        _, _, sigma, _, rho, gamma = p
        v, _ = x
        noise = sigma * v**gamma
        cross = rho * noise * jnp.sqrt(v)
        return jnp.array([[noise**2, cross], [cross, v]])


class BDFS(SDE):
    """Three-factor short rate model of Balduzzi, Das, Foresi and Sundaram, paper appendix E.

    ``dV = k1 (alpha1 - V) dt + sigma1 sqrt(V) dW1``, ``dO = k2 (alpha2 - O) dt + sigma2 dW2``,
    ``dY = k3 (O - Y) dt + sqrt(V) (rho dW1 + sqrt(1 - rho^2) dW3)``: variance, long-run mean and rate.
    """

    name = "bdfs"
    states = {"v": POSITIVE, "o": REAL, "y": REAL}
    parameters = ("k1", "alpha1", "sigma1", "k2", "alpha2", "sigma2", "k3", "rho")
    constraints = (
        Constraint("k1 > 0"),
        Constraint("alpha1 > 0"),
        Constraint("0 < sigma1 < sqrt(2*k1*alpha1)", "strict Feller condition: v never reaches 0"),
        Constraint("k2 > 0"),
        Constraint("sigma2 > 0"),
        Constraint("k3 > 0"),
        _CORRELATION,
    )
    typical = {
        "k1": 3.0, "alpha1": 0.1, "sigma1": 0.25, "k2": 7.0, "alpha2": 0.06, "sigma2": 0.03, "k3": 10.0, "rho": 0.5,
    }  # fmt: skip
    start = (0.1, 0.06, 0.06)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        k1, alpha1, _, k2, alpha2, _, k3, _ = p
        v, o, y = x
        return jnp.array([k1 * (alpha1 - v), k2 * (alpha2 - o), k3 * (o - y)])

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        _, _, sigma1, _, _, sigma2, _, rho = p
        v, _, _ = x
        cross = rho * sigma1 * v
        return jnp.array([[sigma1**2 * v, 0.0, cross], [0.0, sigma2**2, 0.0], [cross, 0.0, v]])


class Jacobi(SDE):
    """Jacobi (Wright-Fisher with mutation): ``dX = kappa (mean - X) dt + sigma sqrt(X (1 - X)) dW`` on (0, 1).

    Two inaccessible boundaries.
    """

    name = "jacobi"
    states = {"x": UNIT_INTERVAL}
    parameters = ("kappa", "mean", "sigma")
    constraints = (
        Constraint("kappa > 0"),
        Constraint("0 < mean < 1"),
        Constraint("0 < sigma < sqrt(2*kappa*min(mean, 1 - mean))", "x reaches neither 0 nor 1"),
    )
    typical = {"kappa": 2.0, "mean": 0.4, "sigma": 0.5}
    start = (0.4,)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        kappa, mean, _ = p
        return kappa * (mean - x)

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        return (p[2] ** 2 * x * (1 - x))[None]


class DoubleWell(SDE):
    """Overdamped motion in a double well: ``dX = theta (X - X^3) dt + sigma dW``. Non-linear, bimodal, metastable."""

    name = "double-well"
    states = {"x": REAL}
    parameters = ("theta", "sigma")
    constraints = (Constraint("theta > 0"), Constraint("sigma > 0"))
    typical = {"theta": 1.0, "sigma": 0.7}
    start = (0.3,)

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        return p[0] * (x - x**3)

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        return jnp.array([[p[1] ** 2]])


MODELS: dict[str, type[SDE]] = {
    model.name: model for model in (OU, SeasonalOU, GBM, CIR, Heston, SVCEV, BDFS, Jacobi, DoubleWell)
}
"""Every shipped model by name: the one registry that tests and the command line go through."""
