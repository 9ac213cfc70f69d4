"""Derivatives by differences: of high-precision references, and of batches in double precision."""

import mpmath as mp
import numpy as np


def partial_derivative(f, point, i):
    """Fourth-order central difference of f in its i-th argument; the step makes its own error 1e-16 relative."""
    with mp.workdps(34):
        h = abs(mp.mpf(point[i])) * mp.mpf("1e-4") or mp.mpf("1e-6")

        def at(k):
            return f(*(mp.mpf(x) + (k * h if j == i else 0) for j, x in enumerate(point)))

        return float((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h))


def stencil(rows, columns, h):
    """Rows moved by +-h and +-2h in each of the columns, and the steps h, of shape (rows, columns)."""
    moves = [k * h[:, j, None] * np.eye(rows.shape[1])[c] for j, c in enumerate(columns) for k in (1, -1, 2, -2)]
    return np.concatenate([rows + m for m in moves]), h


def slopes(values, h, n):
    """Fourth-order differences of values at a stencil, one for each column."""
    up, down, up2, down2 = np.moveaxis(values.reshape(h.shape[1], 4, n, *values.shape[1:]), 1, 0)
    return (8 * (up - down) - (up2 - down2)) / (12 * h.T.reshape(h.shape[1], n, *([1] * (values.ndim - 1))))
