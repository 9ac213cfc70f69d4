"""Are these numbers uniform on (0, 1), and independent of each other? Tests for PIT residuals and for ranks.

Uniformity is tested by Neyman's smooth test: with orthonormal Legendre polynomials pi_j on (0, 1),

    N_j = n^{-1/2} sum_i pi_j(u_i) ,    N_1^2 + ... + N_4^2 ~ chi^2_4 ,

whose four components are what goes wrong in practice: too high, too spread, skewed, too peaked with heavy tails.

**References:** Neyman (1937), "Smooth test" for goodness of fit; Diebold, Gunther and Tay (1998), Evaluating density
forecasts, for levels and spreads of PIT residuals; Ljung and Box (1978), On a measure of lack of fit in time series models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import chi2, rankdata

LAGS, VALUES_PER_LAG = 10, 15
"""With fewer values for each lag, Ljung and Box's statistic is larger than chi-squared too often."""


@dataclass(frozen=True)
class Smooth:
    """Neyman's test: its p-value and its four components, standard normal if the numbers are uniform."""

    p_value: float
    components: Float[np.ndarray, " 4"]

    @property
    def reason(self) -> tuple[int, bool]:
        """Which component (1 to 4) says what is wrong, and whether it is positive: the one furthest from zero.

        But for tails: scaled to the same variance, a law with heavier ones is also narrower in its centre, and the second
        component says that; only together with the fourth, of the other sign, do they mean tails.
        """
        _, spread, _, tails = self.components
        j = 3 if spread * tails < 0 and abs(tails) > max(2.0, 0.3 * abs(spread)) else int(np.argmax(np.abs(self.components)))
        return j + 1, bool(self.components[j] > 0)


def smooth_test(u: Float[np.ndarray, " n"]) -> Smooth:
    """Neyman's smooth test of order 4. The numbers must be independent for its p-value to hold."""
    components = _polynomials(np.asarray(u)).sum(1) / np.sqrt(len(u))
    return Smooth(float(chi2.sf(np.sum(components**2), 4)), components)


def distance(u: Float[np.ndarray, " n"]) -> float:
    """The largest difference between the empirical distribution function and that of the uniform law."""
    ordered, n = np.sort(u), len(u)
    steps = np.arange(n + 1) / n
    return float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))


def extreme_test(u: Float[np.ndarray, " n"]) -> tuple[float, int]:
    """The p-value of the number closest to 0 or 1, given how many there are, and which one it is."""
    ends = np.minimum(u, 1 - u)
    i = int(np.argmin(ends))
    return float(-np.expm1(len(u) * np.log1p(-min(2 * ends[i], 1 - 1e-16)))), i


def serial_test(values: Float[np.ndarray, " n"], series: Int[np.ndarray, " n"], lags: int = LAGS) -> tuple[float, float]:
    """Ljung and Box's test of no autocorrelation up to `lags`, and the autocorrelation at lag 1.

    Pairs are taken within a series only (`series` says which one each value belongs to). There is one lag for every fifteen
    values; with fewer than fifteen there is nothing to see, and the p-value is 1.
    """
    n = len(values)
    lags = min(lags, n // VALUES_PER_LAG)
    centred = values - values.mean()
    if lags < 1 or not np.any(centred):
        return 1.0, 0.0
    total, first = 0.0, 0.0
    for lag in range(1, lags + 1):
        same = series[lag:] == series[:-lag]
        r = np.sum((centred[lag:] * centred[:-lag])[same]) / np.sum(centred**2)
        first = r if lag == 1 else first
        total += (n + 2) / n * r**2 * n**2 / max(same.sum(), 1)
    return float(chi2.sf(total, lags)), float(first)


def dependence_test(u: Float[np.ndarray, " n"], v: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """The p-value of no correlation between two sets of uniform numbers, and the correlation."""
    r = float(12 * np.mean((u - 0.5) * (v - 0.5)))
    return float(chi2.sf(len(u) * r**2, 1)), r


def state_test(
    u: Float[np.ndarray, " n"], x0: Float[np.ndarray, " n"], *, order: int, degrees: tuple[int, ...]
) -> tuple[float, float]:
    """The p-value of no dependence of u on the state x0 that it starts from, and the largest correlation.

    With pi_j as in `smooth_test`, and r the rank of x0 among all, as a share,

        S_b = n^{-1/2} sum_i pi_order(u_i) pi_b(r_i) ,    sum over degrees b of S_b^2 ~ chi^2 .

    Order 1 asks for the drift, order 2 for the volatility. The linear term (b = 1) of a coordinate's drift in its own start
    is best left out: whoever has fitted a mean reversion has made it zero, and near a unit root it is not normal.
    """
    n = len(u)
    moves, ranks = _polynomials(u)[order - 1], _polynomials((rankdata(x0) - 0.5) / n)
    scores = np.array([moves @ ranks[b - 1] for b in degrees]) / np.sqrt(n)
    return float(chi2.sf(np.sum(scores**2), len(degrees))), float(scores[np.argmax(np.abs(scores))] / np.sqrt(n))


def _polynomials(u: Float[np.ndarray, " n"]) -> Float[np.ndarray, "4 n"]:
    """Legendre polynomials of degree 1 to 4, orthonormal on (0, 1)."""
    x = 2 * u - 1
    legendre = np.stack([x, (3 * x**2 - 1) / 2, (5 * x**3 - 3 * x) / 2, (35 * x**4 - 30 * x**2 + 3) / 8])
    return np.sqrt([[3.0], [5.0], [7.0], [9.0]]) * legendre
