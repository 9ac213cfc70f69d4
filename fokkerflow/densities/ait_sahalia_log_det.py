"""Inverse and log determinant of a covariance of a few rows, and of one that is a power series, in scalar arithmetic.

An entry that is the number 0.0 is zero for all arguments, and nothing is computed with it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

Series = list[Any]


def is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0


def inverse_and_log_det(C: Any) -> tuple[list[list[Any]], Any]:
    """Of a positive definite matrix, by elimination without pivoting."""
    d = len(C)
    A = [[C[i][j] for j in range(d)] + [float(i == j) for j in range(d)] for i in range(d)]
    log_det: Any = 0.0
    for k in range(d):
        pivot = A[k][k]
        log_det = log_det + jnp.log(pivot)
        A[k] = [0.0 if is_zero(value) else value / pivot for value in A[k]]
        for i in range(d):
            if i != k and not is_zero(A[i][k]):
                A[i] = [a if is_zero(b) else a - A[i][k] * b for a, b in zip(A[i], A[k], strict=True)]
    return [row[d:] for row in A], log_det


def log_det_series(A: list[list[Series]]) -> Series:
    """log det of a positive definite matrix whose entries are power series, all cut off after the same power."""
    total: Series = [0.0] * len(A[0][0])
    while A:
        pivot, *above = A[0]
        total = [a + b for a, b in zip(total, _log(pivot), strict=True)]
        shares = [_quotient(row[0], pivot) for row in A[1:]]
        A = [
            [_minus_product(a, s, b) for a, b in zip(row[1:], above, strict=True)] for row, s in zip(A[1:], shares, strict=True)
        ]
    return total


def _log(a: Series) -> Series:
    """From ``a log(a)' = a'``."""
    logs: Series = [jnp.log(a[0])]
    for n in range(1, len(a)):
        logs.append(_less(a[n], [k / n * logs[k] * a[n - k] for k in range(1, n) if not is_zero(a[n - k])]) / a[0])
    return logs


def _quotient(a: Series, b: Series) -> Series:
    found: Series = []
    for n, top in enumerate(a):
        rest = _less(top, [found[k] * b[n - k] for k in range(n) if not (is_zero(b[n - k]) or is_zero(found[k]))])
        found.append(0.0 if is_zero(rest) else rest / b[0])
    return found


def _minus_product(a: Series, b: Series, c: Series) -> Series:
    def part(n: int) -> Any:
        return _less(a[n], [b[k] * c[n - k] for k in range(n + 1) if not (is_zero(b[k]) or is_zero(c[n - k]))])

    return [part(n) for n in range(len(a))]


def _less(value: Any, terms: list[Any]) -> Any:
    return value - sum(terms) if terms else value
