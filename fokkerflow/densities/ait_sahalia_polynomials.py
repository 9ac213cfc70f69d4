"""Polynomials in a few variables, sorted by degree, with coefficients that JAX may be tracing.

Coefficients are scalars and the loops over monomials are Python's, so that a computation becomes plain arithmetic, which a
batch of transitions runs through in vectors. A coefficient that is zero for a whole model is left out, with all its products.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax

Multi = tuple[int, ...]
"""The exponents of a monomial."""

Homogeneous = dict[Multi, Any]
"""A polynomial of one degree: the coefficients of its monomials."""

Graded = list[Homogeneous]
"""A polynomial, by degree."""

Vector = list[Graded]
Matrix = list[Vector]


def monomials(d: int, degree: int) -> list[Multi]:
    """The exponents of all monomials of this degree in d variables."""
    picks = itertools.combinations_with_replacement(range(d), degree)
    return [tuple(pick.count(i) for i in range(d)) for pick in picks]


def factorial(m: Multi) -> int:
    return math.prod(map(math.factorial, m))


def degree_part(f: Graded, n: int) -> Homogeneous:
    return f[n] if 0 <= n < len(f) else {}


def add(terms: Iterable[Homogeneous]) -> Homogeneous:
    total: Homogeneous = {}
    for term in terms:
        for m, c in term.items():
            total[m] = total[m] + c if m in total else c
    return total


def scale(f: Homogeneous, factor: Any) -> Homogeneous:
    return {m: factor * c for m, c in f.items()}


def times(f: Homogeneous, g: Homogeneous) -> Homogeneous:
    product: Homogeneous = {}
    for m, a in f.items():
        for n, b in g.items():
            key = tuple(map(sum, zip(m, n, strict=True)))
            product[key] = product[key] + a * b if key in product else a * b
    return product


def product_part(f: Graded, g: Graded, n: int) -> Homogeneous:
    """What f g has of degree n."""
    return add(times(degree_part(f, i), degree_part(g, n - i)) for i in range(n + 1))


def dot_part(f: Sequence[Graded], g: Sequence[Graded], n: int) -> Homogeneous:
    """What the sum of the products has of degree n."""
    return add(product_part(a, b, n) for a, b in zip(f, g, strict=True))


def derivative(f: Homogeneous, i: int) -> Homogeneous:
    lowered = {(*m[:i], m[i] - 1, *m[i + 1 :]): (m[i], c) for m, c in f.items() if m[i]}
    return {m: c if e == 1 else e * c for m, (e, c) in lowered.items()}


def differentiate(f: Graded, i: int) -> Graded:
    return [derivative(part, i) for part in f[1:]]


def gradient(f: Graded, d: int) -> Vector:
    return [differentiate(f, i) for i in range(d)]


def fence(parts: Sequence[Homogeneous]) -> Graded:
    """The same, behind a barrier: XLA would fuse thousands of operations on coefficients, and compile for many minutes."""
    return jax.lax.optimization_barrier(list(parts))


def evaluate(f: Graded, h: Sequence[Any]) -> list[Any]:
    """The value at h of each degree's part; a part that is empty is zero."""
    powers = [[1.0] for _ in h]
    for _ in range(len(f) - 1):
        powers = [[*known, known[-1] * x] for known, x in zip(powers, h, strict=True)]

    def monomial(m: Multi) -> Any:
        return math.prod(powers[i][e] for i, e in enumerate(m) if e)

    return [sum((c * monomial(m) for m, c in part.items()), start=0.0) for part in f]
