r"""A bound on the L1 error of a trained density that needs no reference.

Let q_s be any density that moves with s, and e(q) = d/ds log q_s - (L* q_s)/q_s its residual. The Fokker-Planck semigroup is
a contraction in L1, so for the transition density p of the same start and parameters, by Duhamel's formula

    \|q_tau - p_tau\|_1  <=  \|q_eps - p_eps\|_1 + int_eps^tau E_{x ~ q_s} \|e(q)\| ds ,

if no probability leaves through a boundary under q or p. (Write d/ds q = L* q + e q: then q_tau - p_tau is the semigroup
applied to q_eps - p_eps, plus the integral of the semigroup applied to e q_s.)

**The start.** A flow is never exact at its start, and its integral from 0 may diverge, so another density carries the bound
from 0 to some eps: the Gaussian N_s of the moments of the process, in the automatic charts. From a start inside the domain,
where the coefficients are smooth and Sigma is positive definite, N and p are both within order sqrt(s) of one and the same
Gaussian. Therefore \|N_s - p_s\|_1 vanishes as s -> 0, and the inequality holds for N from 0. At eps the bound changes over
to the flow:

    \|q_tau - p_tau\|_1  <=  int_0^eps E_N \|e(N)\| ds  +  \|q_eps - N_eps\|_1  +  int_eps^tau E_q \|e(q)\| ds .

This holds for every eps, and the best one is taken. It needs nothing from the flow but its density, so it serves both trainers.

**What is computed.** The integrals are Gauss-Legendre sums in sqrt(s) over panels that shrink towards 0, the first from 0 to a
billionth of the longest gap, where E \|e(N)\| is of order 1/sqrt(s). Expectations are over exact draws at scrambled Sobol'
points, with a standard error from independent scramblings. So the bound is a theorem; the figure is a numerical estimate of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.flow import AnchoredStart, Coordinate, FlowConfig, Network, Uniform, build_flow, exact_draw, weights
from fokkerflow.flow.lamperti import automatic_chart
from fokkerflow.fokker_planck import coefficients, log_adjoint
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.training.bound_rules import Base, base_points, time_panels
from fokkerflow.training.trained import Trained

_TOGETHER = 16
"""Pairs of condition and time that are evaluated together."""


Conditions = tuple[Float[Array, " c"], Float[Array, "c d"], Float[Array, "c n_p"]]
"""t0, x0 and p."""


class Bounds(NamedTuple):
    """Bounds on the L1 error, which itself lies between 0 and 2.

    **Attributes:**

    - `value`: for each condition (rows) and gap (columns).
    - `error`: its standard error from the sampling of the expectations.
    - `start`: the part of it that is the Gaussian's and the change to the flow: the first two terms.
    - `unusable`: points where a residual was not finite, which are left out: the bound holds only if there are none.
    """

    value: Float[np.ndarray, "c m"]
    error: Float[np.ndarray, "c m"]
    start: Float[np.ndarray, "c m"]
    unusable: int

    @property
    def upper(self) -> Float[np.ndarray, "c m"]:
        """The bounds and three standard errors."""
        return self.value + 3 * self.error


@in_float64
def l1_bounds(
    key: PRNGKeyArray,
    trained: Trained,
    x0: Float[Array, "c d"],
    p: Float[Array, "c n_p"],
    t0: Float[Array, " c"],
    dt: Sequence[float],
    *,
    points: int = 32,
    scramblings: int = 8,
) -> Bounds:
    """The bound for each condition and each gap.

    **Arguments:**

    - `key`: for the scramblings.
    - `x0`, `p`, `t0`: conditions.
    - `dt`: increasing gaps.
    - `points`, `scramblings`: Sobol' points in one set, and independent sets.
    """
    panels = time_panels(np.asarray(dt, np.float64))
    base = base_points(key, points, scramblings, trained.sde.dimension)
    conditions, tau, gaussian = (t0, x0, p), jnp.asarray(panels.tau), gaussian_of_moments(trained)
    own, bad_own = _expectations(trained, conditions, tau, base)
    normal, bad_normal = _expectations(gaussian, conditions, tau, base)
    changes = slice(0, panels.asked[0] + 1)  # at the end of any panel up to the first gap
    distance = _distances(trained, gaussian, conditions, jnp.asarray(panels.ends[changes]), base)
    start = panels.integrals(normal)[:, changes] + np.asarray(distance)
    flow = panels.integrals(own)
    unusable = np.sum(bad_own[:, 1:]) + np.sum(bad_normal[:, changes])  # the flow's own first panel is not used
    return _best(start, flow - flow[:, :1], panels.asked, int(unusable))


def _best(
    start: Float[np.ndarray, "c e r"], flow: Float[np.ndarray, "c k r"], asked: Int[np.ndarray, " m"], bad: int
) -> Bounds:
    """The smallest total over the panels at whose end the bound may change from the Gaussian to the flow.

    `start` and `flow` are the terms up to the end of each panel, for each condition, panel and scrambling.
    """
    total = start[:, None] + flow[:, asked][:, :, None] - flow[:, None, : start.shape[1]]
    best = np.argmin(total.mean(axis=-1), axis=-1)
    chosen = np.take_along_axis(total, best[..., None, None], axis=2)[:, :, 0]
    value, error = chosen.mean(axis=-1), chosen.std(axis=-1, ddof=1) / np.sqrt(chosen.shape[-1])
    return Bounds(value, error, np.take_along_axis(start.mean(axis=-1), best, axis=1), bad)


@eqx.filter_jit
def _expectations(
    trained: Trained, conditions: Conditions, tau: Float[Array, "k nodes"], base: Base
) -> tuple[Float[Array, "c k nodes r"], Int[Array, "c k nodes"]]:
    """E\\|s e\\| for each condition, time and set of base points, and how many points were not finite."""

    def at(t0: Scalar, x0: State, p: Parameters, tau: Scalar) -> tuple[Float[Array, " r"], Array]:
        residual = jax.vmap(jax.vmap(lambda u: scaled_residual(trained, t0, tau, x0, p, u)))(base.u)
        usable = jnp.isfinite(residual)
        return jnp.mean(jnp.where(usable, jnp.abs(residual), 0.0) * base.weight, axis=1), jnp.sum(~usable)

    expected, unusable = _for_all(at, conditions, tau.ravel())
    return expected.reshape(-1, *tau.shape, expected.shape[-1]), unusable.reshape(-1, *tau.shape)


@eqx.filter_jit
def _distances(
    trained: Trained, gaussian: Trained, conditions: Conditions, tau: Float[Array, " k"], base: Base
) -> Float[Array, "c k r"]:
    """\\|q - N\\|_1 = 2 E_q max(0, 1 - N/q), whose integrand is bounded."""

    def at(t0: Scalar, x0: State, p: Parameters, tau: Scalar) -> Float[Array, " r"]:
        flow, other = trained.at(tau), gaussian.at(tau)
        condition, its = flow.condition(t0, tau, x0, p), other.condition(t0, tau, x0, p)

        def lack(u: State) -> Scalar:
            x = exact_draw(flow, u, condition)
            return jnp.maximum(-jnp.expm1(other.log_density(x, its) - flow.log_density(x, condition)), 0.0)

        return 2 * jnp.mean(jax.vmap(jax.vmap(lack))(base.u) * base.weight, axis=1)

    return _for_all(at, conditions, tau)


def _for_all(function: Callable[..., Any], conditions: Conditions, tau: Float[Array, " k"]) -> Any:
    """``function(t0, x0, p, tau)`` for every condition and time, some at a time to bound the memory; leading axes (c, k)."""
    c, k = conditions[1].shape[0], tau.size
    pairs = jnp.meshgrid(jnp.arange(c), jnp.arange(k), indexing="ij")
    values = jax.lax.map(
        lambda pair: function(*(v[pair[0]] for v in conditions), tau[pair[1]]),
        tuple(index.ravel() for index in pairs),
        batch_size=_TOGETHER,
    )
    return jax.tree.map(lambda v: v.reshape(c, k, *v.shape[1:]), values)


def scaled_residual(trained: Trained, t0: Scalar, tau: Scalar, x0: State, p: Parameters, u: State) -> Scalar:
    """tau e at the state that the density has at `u` in the unit cube; the weights may move with tau."""

    def moving(s: Scalar) -> tuple:
        flow = trained.at(s)
        return flow, flow.condition(t0, s, x0, p)

    (flow, condition), rates = jax.jvp(moving, (tau,), (jnp.ones_like(tau),))
    x = jax.lax.stop_gradient(exact_draw(flow, u, condition))
    speed = jax.jvp(lambda f, c: f.log_density(x, c), (flow, condition), rates)[1]
    at = coefficients(trained.sde, t0 + tau, x, p)
    return tau * (speed - log_adjoint(lambda z: flow.log_density(z, condition), at, x))


def gaussian_of_moments(trained: Trained) -> Trained:
    """The Gaussian of the moments, in the automatic charts: one component and no corrections."""
    sde, one = trained.sde, Network(width=1, depth=1)
    columns = (Coordinate(automatic_chart(d), (1,), tuple(range(i)), Uniform(), one) for i, d in enumerate(sde.domains))
    flow = build_flow(jax.random.key(0), sde, FlowConfig(tuple(columns), AnchoredStart(trained.gaps.longest)))
    theta, with_weights = weights(flow)
    return Trained(with_weights(jnp.zeros_like(theta)), None, trained.law, trained.gaps, trained.record)
