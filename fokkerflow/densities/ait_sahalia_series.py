"""The short-time series of a log transition density: Ait-Sahalia's equations, solved degree by degree.

    log p(x | x0) = -d/2 log(2 pi t) + sum_{k >= -1} L_k(x) t^k

In the Fokker-Planck equation for log p each power of t gives one equation (Ait-Sahalia 2008, theorem 1; there
``C^(-1) = L_-1``, ``C^(0) = L_0 + D``, ``C^(k) = k! L_k``), with u = Sigma grad L_-1:

    k L_k - u' grad L_k = (div Sigma - b)' grad L_{k-1} + Sigma : Hess L_{k-1} / 2
                          + sum_{i+j=k-1} (grad L_i)' Sigma grad L_j / 2 + [k = 1] (div div Sigma / 2 - div b) .

As ``u = -(x - x0) + ...``, the left side is (k + n) times the part of degree n of L_k, plus parts of lower degree: each
degree follows from those before without a system of equations. Where drift and covariance depend on time, they are expanded
in it, and each power of time delays its terms by one k.
"""

from __future__ import annotations

from typing import Any

from fokkerflow.densities.ait_sahalia_log_det import inverse_and_log_det, is_zero
from fokkerflow.densities.ait_sahalia_polynomials import (
    Graded,
    Homogeneous,
    Matrix,
    Vector,
    add,
    degree_part,
    derivative,
    differentiate,
    dot_part,
    fence,
    gradient,
    product_part,
    scale,
    times,
)
from fokkerflow.densities.ait_sahalia_taylor import Taylor


def short_time_series(at: Taylor, order: int, last: int) -> list[Graded]:
    """L_-1, L_0, ..., L_last as polynomials in x - x0, L_k up to degree `order` - 2 k.

    L_-1 has no parts of degree 0 and 1. L_0 begins with -log det Sigma(x0) / 2.
    """
    known = _Series(at, order)
    for k in range(last + 1):
        known.extend(k)
    return known.terms


class _Series:
    """What is known so far: `terms[k + 1]` is L_k, `slopes[k + 1]` its gradient, `flux[k + 1][m]` Sigma_m times that."""

    def __init__(self, at: Taylor, order: int) -> None:
        self.at, self.order, self.d = at, order, len(at.drift[0])
        inverse, self.log_det = inverse_and_log_det(_constant(at.covariance[0]))
        phase = _phase(at.covariance[0], inverse, order)
        self.terms, self.slopes = [phase], [gradient(phase, self.d)]
        self.flux = [self._flux(self.slopes[0], order + 1)]

    def extend(self, k: int) -> None:
        degree = self.order - 2 * k
        known = fence([self._known(k, n) for n in range(degree + 1)])
        term: Graded = [{(0,) * self.d: -0.5 * self.log_det} if k == 0 else scale(known[0], 1 / k)]
        bent = [[{}, {}, *u[2:]] for u in self.flux[0][0]]  # u without its leading part
        for n in range(1, degree + 1):
            rest = dot_part(bent, gradient(term, self.d), n)
            term += fence([scale(add([known[n], rest]), 1 / (k + n))])
        self.terms.append(term)
        self.slopes.append(gradient(term, self.d))
        self.flux.append(self._flux(self.slopes[-1], degree))

    def _known(self, k: int, n: int) -> Homogeneous:
        """The part of degree n of the right hand side for L_k, without the terms that contain L_k."""
        powers = range(len(self.at.drift))
        parts = [self._first_order(k - 1 - m, m, n) for m in powers if k - 1 - m >= -1]
        for m in powers:
            pairs = [(i, k - 1 - m - i) for i in range(-1, k) if -1 <= k - 1 - m - i < k]
            parts += [scale(dot_part(self.slopes[i + 1], self.flux[j + 1][m], n), 0.5) for i, j in pairs]
        if 1 <= k <= len(self.at.drift):
            parts.append(self._source(k - 1, n))
        return add(parts)

    def _first_order(self, k: int, m: int, n: int) -> Homogeneous:
        """(div Sigma_m - b_m)' grad L_k + Sigma_m : Hess L_k / 2."""
        slopes, covariance = self.slopes[k + 1], self.at.covariance[m]
        parts = []
        for a in range(self.d):
            parts.append(scale(product_part(self.at.drift[m][a], slopes[a], n), -1.0))
            for b in range(self.d):
                parts.append(product_part(differentiate(covariance[a][b], b), slopes[a], n))
                parts.append(scale(product_part(covariance[a][b], differentiate(slopes[a], b), n), 0.5))
        return add(parts)

    def _source(self, m: int, n: int) -> Homogeneous:
        """div div Sigma_m / 2 - div b_m."""
        parts = []
        for a in range(self.d):
            parts.append(scale(derivative(degree_part(self.at.drift[m][a], n + 1), a), -1.0))
            for b in range(self.d):
                second = derivative(derivative(degree_part(self.at.covariance[m][a][b], n + 2), a), b)
                parts.append(scale(second, 0.5))
        return add(parts)

    def _flux(self, slopes: Vector, degree: int) -> list[Vector]:
        return [[fence([dot_part(row, slopes, n) for n in range(degree + 1)]) for row in Sigma] for Sigma in self.at.covariance]


def _phase(covariance: Matrix, inverse: list[list[Any]], order: int) -> Graded:
    """L_-1, from ``-L = (grad L)' Sigma grad L / 2``: minus half the squared geodesic distance."""
    d = len(inverse)
    entries = [(a, b) for a in range(d) for b in range(d) if not is_zero(inverse[a][b])]
    quadratic = add({tuple((i == a) + (i == b) for i in range(d)): -0.5 * inverse[a][b]} for a, b in entries)
    phase: Graded = [{}, {}, quadratic]
    flux: Vector = [[{}, {}] for _ in range(d)]
    for n in range(3, order + 3):
        slopes = gradient(phase, d)
        if n == 3:
            for a in range(d):
                flux[a][1] = dot_part(covariance[a], slopes, 1)
        partial = fence([dot_part(row, slopes, n - 1) for row in covariance])
        known = add(times(slopes[a][i], flux[a][n - i]) for a in range(d) for i in range(2, n - 1))
        first = add(times(slopes[a][1], partial[a]) for a in range(d))
        phase += fence([scale(add([known, first]), 0.5 / (n - 1))])
        for a in range(d):
            missing = (times(degree_part(covariance[a][b], 0), derivative(phase[n], b)) for b in range(d))
            flux[a].append(add([partial[a], *missing]))
    return phase


def _constant(covariance: Matrix) -> list[list[Any]]:
    d = len(covariance)
    return [[degree_part(entry, 0).get((0,) * d, 0.0) for entry in row] for row in covariance]
