"""Truncated Taylor series in a few variables: values and all derivatives up to a degree, carried through sums and products.

A jet is a dictionary from exponents to coefficients, ``{(1, 0, 2): c}`` for ``c x z^2``; what is not in it is zero for good, so
a jet that is affine in two of four variables costs three numbers. Coefficients are scalars, which JAX may be tracing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

Exponents = tuple[int, ...]
Jet = dict[Exponents, Any]


def variable(value: Any, i: int, count: int) -> Jet:
    """The i-th of `count` variables, at `value`."""
    return {(0,) * count: value, tuple(int(i == j) for j in range(count)): jnp.ones_like(value)}


def multiply(a: Jet, b: Jet, degree: int) -> Jet:
    """The product, up to total degree `degree`."""
    product: Jet = {}
    for (s, x), (t, y) in itertools.product(a.items(), b.items()):
        if sum(s) + sum(t) <= degree:
            key = tuple(i + j for i, j in zip(s, t, strict=True))
            product[key] = product[key] + x * y if key in product else x * y
    return product


def square(a: Jet, degree: int) -> Jet:
    """The product with itself, in half the multiplications."""
    items, result = list(a.items()), dict[Exponents, Any]()
    for i, (s, x) in enumerate(items):
        for j, (t, y) in enumerate(items[i:], i):
            if sum(s) + sum(t) <= degree:
                key = tuple(m + n for m, n in zip(s, t, strict=True))
                term = x * y if i == j else 2 * x * y
                result[key] = result[key] + term if key in result else term
    return result


def combine(terms: Iterable[tuple[Any, Jet]]) -> Jet:
    """The sum of multiples of jets."""
    total: Jet = {}
    for factor, jet in terms:
        for key, value in jet.items():
            total[key] = total[key] + factor * value if key in total else factor * value
    return total


def derivatives(jet: Jet, order: int, count: int) -> Array:
    """The symmetric array of all derivatives of one order, of shape ``(count,) * order``."""
    entries = []
    for index in itertools.product(range(count), repeat=order):
        key = tuple(index.count(i) for i in range(count))
        entries.append(math.prod(map(math.factorial, key)) * jet[key] if key in jet else jnp.zeros(()))
    return jnp.stack(entries).reshape((count,) * order)
