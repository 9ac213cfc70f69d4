"""Closed-form expansion of the log transition density in the time gap (Ait-Sahalia 2008), for any diffusion."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from fokkerflow.densities.ait_sahalia_coordinates import COORDINATES, Frame
from fokkerflow.densities.ait_sahalia_log_det import inverse_and_log_det, log_det_series
from fokkerflow.densities.ait_sahalia_options import check_noise, check_whole, check_word
from fokkerflow.densities.ait_sahalia_polynomials import Matrix, evaluate
from fokkerflow.densities.ait_sahalia_reducible import AitSahaliaReducible
from fokkerflow.densities.ait_sahalia_series import short_time_series
from fokkerflow.densities.ait_sahalia_taylor import taylor
from fokkerflow.densities.density import Density
from fokkerflow.densities.registry import register
from fokkerflow.sde.model import SDE, Parameters, Scalar, State

ROUTES = ("auto", "expanded", "reducible")


@register("ait-sahalia")
def ait_sahalia(
    sde: SDE, *, order: int = 2, route: str = "auto", coordinates: str = "natural", extra_degree: int = 0
) -> Density:
    """The closed-form expansion of a model's transition density.

    **Arguments:**

    - `order`: the power K of the gap up to which the expansion goes, 1 to 4 (1 or 2 for the reducible route).
    - `route`: "reducible" transforms the one state of the model to unit noise, where the coefficients need no expansion in
      x - x0; "expanded" is for any model. "auto" takes the first where it is possible, as the article advises.
    - `coordinates`, `extra_degree`: of the expanded route, see `AitSahalia`.
    """
    check_word(route, "route", ROUTES)
    reducible = sde.dimension == 1 and sde.autonomous
    if route == "reducible" and not reducible:
        what = f"has {sde.dimension} states" if sde.dimension > 1 else "depends on time"
        raise ValueError(
            f"{sde.label} {what}; the reducible route is for one state and formulas without time. Take route='expanded'."
        )
    plain = coordinates == "natural" and extra_degree == 0 and order <= 2
    if route == "reducible" or (route == "auto" and reducible and plain):
        return AitSahaliaReducible(sde, order=order)
    return AitSahalia(sde, order=order, coordinates=coordinates, extra_degree=extra_degree)


class AitSahalia(Density):
    """The irreducible expansion: coefficients expanded in x - x0.

        log p = -d/2 log(2 pi dt) - D(x) + C^(-1)(x|x0) / dt + sum_{k=0}^K C^(k)(x|x0) dt^k / k! ,    D = log det Sigma / 2 ,

    C^(k) a polynomial in x - x0 of degree ``2 (K - k) + extra_degree`` that solves the equations of theorem 2, see
    `fokkerflow.densities.ait_sahalia_series`. The article derives the polynomials by computer algebra for one model after the
    other; here the Taylor coefficients of drift and covariance come from automatic differentiation at each start, and the
    recursion is plain arithmetic on them, so that any model that JAX can differentiate has its expansion, also one that
    depends on time.

    **Validity:** short gaps: the error of log p is O(dt^(K + 1/2)) for states at a fixed number of standard deviations. The
    series is asymptotic: it fails once the gap is comparable to the time of mean reversion or that in which the noise changes,
    and a larger order is then worse. It is not normalised, and some standard deviations out the polynomials may take over and
    p grow without bound. There is no NaN: what overflows is -inf.

    **Cost:** see ``benchmarks/expansions.py``; it grows steeply with d and the order, and so does compilation (thousands of
    multiplications): seconds for values, a minute or more of processor time for gradients.

    **Attributes:**

    - `coordinates`: in which it expands, "natural" as the article, "log" or "root", see `Frame`. The density is that of the
      states in any case.
    - `extra_degree`: more degrees in x - x0 than the article's.

    **Reference:** Ait-Sahalia (2008), Closed-form likelihood expansions for multivariate diffusions, Annals of Statistics 36.
    """

    sde: SDE
    order: int
    coordinates: str
    extra_degree: int

    def __init__(self, sde: SDE, *, order: int = 2, coordinates: str = "natural", extra_degree: int = 0) -> None:
        self.sde = check_noise(sde)
        self.order = check_whole(order, "order", 1, 4)
        self.coordinates = check_word(coordinates, "coordinates", COORDINATES)
        self.extra_degree = check_whole(extra_degree, "extra_degree", 0, 4)

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        frame = Frame(self.sde, self.coordinates)
        z1, z0 = frame.place(x1), frame.place(x0)
        weight = 2 * self.order + self.extra_degree
        at = taylor(frame, weight, t0, z0, p)
        h = list(z1 - z0)
        values = [sum(evaluate(term, h)) for term in short_time_series(at, weight, self.order)]
        total = -len(h) / 2 * jnp.log(2 * math.pi * dt) + frame.log_slope(z1)
        for k, value in enumerate(values):
            total = total + value * dt ** (k - 1)
        half_log_det = inverse_and_log_det(frame.formulas(t0, z1, p)[1])[1] / 2
        total = total + _half_log_det_polynomial(at.covariance[0], h) - half_log_det
        return jnp.where(jnp.isfinite(total), total, -jnp.inf)


def _half_log_det_polynomial(covariance: Matrix, h: list[Any]) -> Any:
    """The Taylor polynomial of log det Sigma / 2 at x0, in the value h of x - x0."""
    along = [[evaluate(entry, h) for entry in row] for row in covariance]
    return sum(log_det_series(along)) / 2
