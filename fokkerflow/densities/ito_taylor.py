"""The delta expansion of a transition density (Yang, Chen and Wan 2019): a Gaussian times a polynomial; it may be negative."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from fokkerflow.densities.ait_sahalia_coordinates import COORDINATES, Frame
from fokkerflow.densities.ait_sahalia_options import check_noise, check_whole, check_word
from fokkerflow.densities.ait_sahalia_polynomials import evaluate
from fokkerflow.densities.ait_sahalia_series import short_time_series
from fokkerflow.densities.ait_sahalia_taylor import taylor
from fokkerflow.densities.density import Density
from fokkerflow.densities.registry import register
from fokkerflow.sde.model import SDE, Parameters, Scalar, State

CENTRES = ("start", "drift")


@register("ito-taylor")
class ItoTaylor(Density):
    """A Gaussian with the noise of the start, times a polynomial in the scaled increment z = (x - x0) / sqrt(dt).

        p(x | x0, dt) = N(x; x0, Sigma(x0) dt) (1 + q_1(z) dt^{1/2} + ... + q_J(z) dt^{J/2}) ,    q_j of degree 3 j .

    It is what the Ito-Taylor expansion of E[delta(X - x)] gives: with Hermite polynomials He_m of N(0, Sigma(x0)),
    ``q_j = sum_m c_jm He_m``, where c_jm is the coefficient of ``dt^{j/2}`` in E[He_m(z)] / m!, a sum over powers of the
    generator. Around a given Gaussian there is only one expansion in powers of dt^{1/2} at fixed z, so the q_j also follow from
    the series of log p (`fokkerflow.densities.ait_sahalia_series`): with ``T_j`` all of its terms of order dt^{j/2},

        j q_j = sum_{i=1}^j i T_i q_{j-i} ,

    which needs a number for each j instead of some hundred Hermite coefficients. The tests hold the two against each other.

    **Validity:** short gaps: the relative error is O(dt^{(J+1)/2}) for states at a fixed number of standard deviations. The
    polynomial may be **negative**, most of all in the tails or where the gap is long against mean reversion: the log density
    is -inf there, and `negative_share` counts. With its negative part it integrates to one over the whole space, whatever the
    domain. Also for models that depend on time.

    **Cost:** as that of `AitSahalia` at order J / 2.

    **Attributes:**

    - `order`: J, from 1 to 8.
    - `centre`: of the Gaussian, "start" for x0, "drift" for x0 + b(x0) dt, which is another expansion of the same order.
    - `coordinates`: in which it expands, "natural", "log" or "root", see `Frame`; the density is of the states in any case.

    **References:** Yang, Chen and Wan (2019), A new delta expansion for multivariate diffusions via the Ito-Taylor expansion,
    Journal of Econometrics 209; Li (2013), Maximum-likelihood estimation for diffusion processes via closed-form density
    expansions, Annals of Statistics 41, for the same expansion by another way.
    """

    sde: SDE
    order: int
    centre: str
    coordinates: str

    def __init__(self, sde: SDE, *, order: int = 4, centre: str = "start", coordinates: str = "natural") -> None:
        self.sde = check_noise(sde)
        self.order = check_whole(order, "order", 1, 8)
        self.centre = check_word(centre, "centre", CENTRES)
        self.coordinates = check_word(coordinates, "coordinates", COORDINATES)

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        gaussian, polynomial = self.factors(x1, x0, dt, p, t0)
        positive = jnp.isfinite(polynomial) & (polynomial > 0)
        return jnp.where(positive, gaussian + jnp.log(jnp.where(positive, polynomial, 1.0)), -jnp.inf)

    def factors(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> tuple[Scalar, Scalar]:
        """The logarithm of the Gaussian, and the polynomial, of either sign; arguments as those of `log_density`."""
        gaussian, terms = self._terms(x1, x0, dt, p, t0)
        return gaussian, _exponential(terms)

    def negative_share(self, x1: Any, x0: Any, dt: Any, params: Any, t0: Any = 0.0) -> float:
        """The share of transitions, states inside the domain, at which the expansion is not positive; as `log_prob_batch`."""
        return float(np.mean(np.isneginf(self.log_prob_batch(x1, x0, dt, params, t0))))

    def _terms(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> tuple[Scalar, list[Any]]:
        """The logarithm of the Gaussian, and T_j dt^{j/2} for j from 1."""
        frame = Frame(self.sde, self.coordinates, moving=self.centre == "drift")
        z1, z0 = frame.place(x1), frame.place(x0)
        centre = z0 + dt * frame.drift(t0, z0, p) if frame.moving else z0
        h = list(z1 - centre)
        series = short_time_series(taylor(frame, self.order, t0, z0, p), self.order, self.order // 2)
        terms: list[Any] = [frame.log_slope(z1) - len(h) / 2 * jnp.log(2 * math.pi * dt)] + [0.0] * self.order
        for k, parts in enumerate(series, start=-1):
            for n, part in enumerate(evaluate(parts, h)):
                if not (isinstance(part, float) and part == 0.0):
                    terms[2 * k + n] = terms[2 * k + n] + part * dt**k
        return terms[0], terms[1:]


def _exponential(terms: list[Any]) -> Any:
    """exp of a power series without constant, cut off after as many powers as it has."""
    known: list[Any] = [jnp.ones(())]
    for j in range(1, len(terms) + 1):
        known.append(sum(i * terms[i - 1] * known[j - i] for i in range(1, j + 1)) / j)
    return sum(known)
