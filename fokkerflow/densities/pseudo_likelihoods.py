"""Gaussian pseudo-likelihoods, for any SDE: Euler, local linearisation, and the moment closure that anchors the flow.

They are what is used where nothing better is at hand. None of them sees that a transition is skewed or bounded: where the noise
depends on the state, the error of log p at a fixed number of standard deviations falls like the root of dt only.
"""

from __future__ import annotations

import abc
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp

from fokkerflow.densities.density import Density
from fokkerflow.densities.gaussian_law import bounded_coordinate, log_mass_inside, log_normal, refuse_singular
from fokkerflow.densities.local_linear import linear_law
from fokkerflow.densities.registry import register
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State
from fokkerflow.sde.moments import moments


class GaussianDensity(Density):
    """N(x1; mean, covariance), in the model's own coordinates, of the `law` of a subclass.

    At the edge of a domain a Gaussian has mass outside, and as a density inside it integrates to less than one; that is what
    these methods are, so nothing is done about it by default.

    **Attributes:**

    - `truncated`: divide by the mass inside the domain, if one coordinate at most is bounded.
    """

    truncated: eqx.AbstractVar[bool]
    noise_through_drift: ClassVar[bool] = True

    @abc.abstractmethod
    def law(self, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> tuple[State, Matrix]:
        """Mean and covariance of the transition."""

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        mean, covariance = self.law(x0, dt, p, t0)
        log = log_normal(x1, mean, covariance)
        i = bounded_coordinate(self.sde) if self.truncated else None
        return log if i is None else log - log_mass_inside(self.sde.domains[i], mean[i], covariance[i, i])

    def __check_init__(self) -> None:
        if self.truncated:
            bounded_coordinate(self.sde)
        refuse_singular(self.sde, through_drift=self.noise_through_drift)


@register("euler")
@final
class EulerDensity(GaussianDensity):
    """One step of Euler and Maruyama: mean ``x0 + b(t0, x0) dt``, covariance ``Sigma(t0, x0) dt``.

    The error of log p at a fixed number of standard deviations is of order dt for constant noise and of order sqrt(dt)
    otherwise. Needs a Sigma that is not singular. It costs less than any other density.

    **Reference:** Maruyama (1955), Continuous Markov processes and stochastic equations; Florens-Zmirou (1989), Approximate
    discrete-time schemes for statistics of diffusion processes, for its use as a likelihood.
    """

    sde: SDE
    truncated: bool = False
    noise_through_drift: ClassVar[bool] = False

    def law(self, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> tuple[State, Matrix]:
        return x0 + self.sde.drift(t0, x0, p) * dt, self.sde.covariance(t0, x0, p) * dt


@register("local-linearisation")
@final
class LocalLinearDensity(GaussianDensity):
    """The law of the linear diffusion that touches the model at (t0, x0).

    By Ito's formula the drift along a path is ``b(t, X_t) = b + J (X_t - x0) + M (t - t0) + ...``, with b, ``J = D b`` and
    ``M = d_t b + 1/2 Sigma_jk d_j d_k b`` taken at (t0, x0), where the noise is frozen too:

        mean = x0 + int_0^dt e^{J (dt - s)} (b + M s) ds        covariance = int_0^dt e^{J s} Sigma e^{J' s} ds

    Exact for linear drift and constant noise (OU; a drift that is not linear in time leaves an error). The error of log p at a
    fixed number of standard deviations is of order dt^1.5 for constant noise and of order sqrt(dt) otherwise. The noise may
    be singular as long as it reaches every coordinate through the drift (position and velocity).

    **Reference:** Ozaki (1992), A bridge between nonlinear time series models and nonlinear stochastic dynamical systems; Shoji
    and Ozaki (1998), A statistical method of estimation and simulation for systems of stochastic differential equations, for
    the second derivatives and the time in M.
    """

    sde: SDE
    truncated: bool = False

    def law(self, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> tuple[State, Matrix]:
        noise = self.sde.covariance(t0, x0, p)
        slope = jax.jacfwd(lambda x: self.sde.drift(t0, x, p))
        curvature = jax.jacfwd(slope)(x0)
        drift, change = jax.jvp(lambda t: self.sde.drift(t, x0, p), (t0,), (jnp.ones_like(t0),))
        trend = change + jnp.tensordot(curvature, noise) / 2
        step, covariance = linear_law(drift, slope(x0), trend, noise, dt)
        return x0 + step, covariance


@register("moment-closure")
@final
class MomentClosureDensity(GaussianDensity):
    """Gaussian with the mean and covariance of the transition (`fokkerflow.moments`): the anchor of the flow, alone.

    These moments are exact for polynomial diffusions (OU, GBM, CIR, Heston, BDFS, Jacobi) and a Gaussian closure
    otherwise, whatever dt is. So the parameters that it estimates are consistent where the moments are exact, but the shape
    is a Gaussian's: the flow's anchor has charts at the ends of a domain, this has not. The error of log p is of order dt^1.5
    for constant noise, sqrt(dt) otherwise, and does not grow further where the process forgets its start.

    **Reference:** Sarkka (2007), On unscented Kalman filtering for state estimation of continuous-time nonlinear systems, for
    the closure; Kessler (1997), Estimation of an ergodic diffusion from discrete observations, for moments in a Gaussian.
    """

    sde: SDE
    truncated: bool = False

    def law(self, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> tuple[State, Matrix]:
        return moments(self.sde, t0, dt, x0, p)
