"""The delta expansion: its moments by the generator, how fast it gets better, and where it is negative."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.densities import density
from fokkerflow.sde.models import CIR, OU, DoubleWell, Heston, SeasonalOU
from tests.densities.test_ait_sahalia import measured_order, typical

F = Fraction


def generator(f, drift, covariance):
    """b' grad f + Sigma : Hess f / 2 for polynomials as dictionaries from exponents to fractions."""
    out = {}

    def gather(coefficients, m, c, lowered):
        factor, rest = c, list(m)
        for i in lowered:
            factor, rest[i] = factor * rest[i], rest[i] - 1
        if factor:
            for n, a in coefficients.items():
                key = tuple(x + y for x, y in zip(rest, n, strict=True))
                out[key] = out.get(key, F(0)) + a * factor

    for m, c in f.items():
        for i, b in enumerate(drift):
            gather(b, m, c, [i])
            for j, s in enumerate(covariance[i]):
                gather({n: a / 2 for n, a in s.items()}, m, c, [i, j])
    return out


def moment_term(m, k, drift, covariance):
    """The coefficient of t^k in E[h^m], h the increment: L^k h^m / k! at the start."""
    f = {m: F(1)}
    for _ in range(k):
        f = generator(f, drift, covariance)
    return float(f.get((0,) * len(m), F(0))) / math.factorial(k)


def cir():
    a, b, s, x = F(1, 10), F(3), F(1, 4), F(3, 25)
    return CIR(), (0.1, 3.0, 0.25), (0.12,), [{(0,): b * (a - x), (1,): -b}], [[{(0,): s**2 * x, (1,): s**2}]]


def double_well():
    theta, s, x = F(1), F(7, 10), F(3, 10)
    drift = [{(0,): theta * (x - x**3), (1,): theta * (1 - 3 * x * x), (2,): -3 * theta * x, (3,): -theta}]
    return DoubleWell(), (1.0, 0.7), (0.3,), drift, [[{(0,): s**2}]]


def heston():
    a, b, s, mu, rho, v = F(1, 10), F(3), F(1, 4), F(1, 20), F(-4, 5), F(3, 25)
    drift = [{(0, 0): b * (a - v), (1, 0): -b}, {(0, 0): mu - v / 2, (1, 0): F(-1, 2)}]
    line = {(0, 0): v, (1, 0): F(1)}
    covariance = [[{n: c * f for n, c in line.items()} for f in row] for row in ((s * s, rho * s), (rho * s, F(1)))]
    return Heston(), (0.1, 3.0, 0.25, 0.05, -0.8), (0.12, 0.0), drift, covariance


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("case", [cir, double_well, heston])
def test_each_order_has_the_moments_that_the_generator_gives(case, order):
    """q_j is orthogonal to nothing but its Hermite coefficients: moments up to its degree 3 j determine it."""
    sde, p, x0, drift, covariance = case()
    d, p, x0 = len(x0), jnp.array(p), jnp.array(x0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    w = np.array(list(itertools.product(nodes, repeat=d)))
    weight = np.prod(list(itertools.product(weights / weights.sum(), repeat=d)), axis=1)
    z = w @ np.linalg.cholesky(np.asarray(sde.covariance(0.0, x0, p))).T

    def polynomial(n):
        q, one = density("ito-taylor", sde, order=n), jnp.ones(())
        return np.asarray(jax.jit(jax.vmap(lambda h: q.factors(x0 + h, x0, one, p, 0 * one)[1]))(jnp.asarray(z)))

    term = polynomial(order) - polynomial(order - 1)  # q_order, as the gap is one
    for m in itertools.product(range(3 * order + 1), repeat=d):
        if sum(m) <= 3 * order:
            power = np.prod(z ** np.array(m), axis=1)
            even = (order + sum(m)) % 2 == 0
            expected = moment_term(m, (order + sum(m)) // 2, drift, covariance) if even else 0.0
            assert weight @ (power * term) == pytest.approx(expected, rel=1e-7, abs=1e-8 * (weight @ abs(power * term)))


@pytest.mark.parametrize(
    ("model", "options", "order"),
    [
        (OU, {}, 2.5),
        (CIR, {}, 2.5),
        (CIR, {"order": 3}, 2.0),
        (CIR, {"centre": "drift"}, 2.5),
        (CIR, {"coordinates": "root"}, 2.5),
        (SeasonalOU, {}, 2.5),
        (Heston, {}, 2.5),
    ],
    ids=str,
)
def test_order_in_the_gap(model, options, order):
    assert measured_order("ito-taylor", model, gaps=np.array([0.004, 0.002]), **options)[0] == pytest.approx(order, abs=0.3)


def test_it_is_negative_where_it_is_and_says_how_often():
    found, p = density("ito-taylor", CIR()), typical(CIR)
    x1 = np.linspace(0.01, 0.5, 50)[:, None]
    log_p = np.asarray(found.log_prob_batch(x1, 0.2, 0.5, p))
    share = found.negative_share(x1, 0.2, 0.5, p)
    assert share == np.mean(log_p == -np.inf)
    assert 0 < share < 1
    assert not np.any(np.isnan(log_p))
    assert found.negative_share(x1[19:21], 0.2, 1e-3, p) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 0}, "got 0, expected a whole number from 1 to 8"),
        ({"centre": "mean"}, "'mean', expected one of 'start', 'drift'"),
        ({"coordinates": "sqrt"}, "'sqrt', expected one of"),
    ],
)
def test_what_it_is_not_for_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        density("ito-taylor", CIR(), **options)
