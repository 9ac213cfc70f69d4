"""A multivariate Gaussian as a transition density: its logarithm, its mass inside the domain, and when it is refused."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.flow.gaussian_mass import log_ndtr
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.linalg import cholesky
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State
from fokkerflow.sde.probing import sample_parameters, sample_states

_PROBES = 8
_SINGULAR = 1e-12
"""Smallest share of a coordinate's variance that the coordinates before it may leave."""


def log_normal(x: State, mean: State, covariance: Matrix) -> Scalar:
    """log N(x; mean, covariance) in plain arithmetic; -inf where rounding or a model has made the covariance singular."""
    L, log, z = cholesky(covariance), jnp.zeros(()), list[Scalar]()
    positive = jnp.ones((), bool)
    for i in range(len(mean)):
        sound = L[i, i] > 0  # not so for NaN
        pivot = jnp.where(sound, L[i, i], 1.0)
        positive = positive & sound
        z.append((x[i] - mean[i] - sum(L[i, j] * z[j] for j in range(i))) / pivot)
        log = log - z[i] ** 2 / 2 - jnp.log(pivot) - math.log(2 * math.pi) / 2
    return jnp.where(positive, log, -jnp.inf)


def log_mass_inside(domain: Domain, mean: Scalar, variance: Scalar) -> Scalar:
    """log P(X in domain) for X ~ N(mean, variance)."""
    root = jnp.sqrt(variance)
    if domain.is_line:
        return jnp.zeros(())
    low = (domain.lower - mean) / root
    if domain.is_half_line:
        return log_ndtr(-low)
    high = (domain.upper - mean) / root
    below, above = jnp.where(low > -high, -low, high), jnp.where(low > -high, -high, low)  # both in the lower tail
    upper, lower = log_ndtr(below), log_ndtr(above)
    return upper + jnp.log1p(-jnp.exp(lower - upper))


def bounded_coordinate(sde: SDE) -> int | None:
    """The one coordinate whose domain has an end; None if there is none.

    **Raises:** ValueError if there are several: the mass of a correlated Gaussian in a box has no closed form.
    """
    bounded = [i for i, domain in enumerate(sde.domains) if not domain.is_line]
    if len(bounded) > 1:
        names = ", ".join(list(sde.states)[i] for i in bounded)
        raise ValueError(
            f"{sde.label}: truncated=True needs the mass that the Gaussian has inside the domain, which is known for one "
            f"bounded coordinate; {names} are bounded. Leave truncated=False."
        )
    return bounded[0] if bounded else None


def refuse_singular(sde: SDE, *, through_drift: bool) -> None:
    """Raise ValueError if some coordinate has no noise, at one of a few states and parameters.

    With `through_drift`, noise may also come from other coordinates by the drift: ``Sigma + J Sigma J' + J^2 Sigma J'^2 ...``
    has full rank (Kalman's condition), J the derivative of the drift.
    """
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        x, p = (jnp.asarray(sample(sde, _PROBES)) for sample in (sample_states, sample_parameters))
        shares = np.nan_to_num(np.asarray(_free_shares(sde, sde.dimension if through_drift else 1, x, p)))
    if np.min(shares) < _SINGULAR:
        k, i = np.unravel_index(np.argmin(shares), shares.shape)
        state = ", ".join(f"{name} = {value:.4g}" for name, value in zip(sde.states, np.asarray(x)[k], strict=True))
        own = "no noise" if through_drift else "no noise of its own"
        other = "" if through_drift else " 'local-linearisation' and 'moment-closure' let noise come through the drift."
        raise ValueError(
            f"{sde.label}: the covariance is singular at {state}: {list(sde.states)[i]} has {own} there, so that a Gaussian "
            f"transition has no density.{other}"
        )


@partial(jax.jit, static_argnums=(0, 1))
def _free_shares(sde: SDE, terms: int, x: Float[Array, "k d"], p: Float[Array, "k n"]) -> Float[Array, "k d"]:
    """Of each coordinate's noise, the share that the coordinates before it do not explain."""

    def shares(x: State, p: Parameters) -> State:
        start = jnp.zeros(())
        slope, noise = jax.jacfwd(lambda x: sde.drift(start, x, p))(x), sde.covariance(start, x, p)
        total, term = noise, noise
        for _ in range(terms - 1):
            term = slope @ term @ slope.T
            total = total + term
        return jnp.diagonal(cholesky(total)) ** 2 / jnp.diagonal(total)

    return jax.vmap(shares)(x, p)
