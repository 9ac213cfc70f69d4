"""Reference laws on [0, 1], paper sections 4.2 and C.1: what the last layer of the flow maps each coordinate to.

A reference whose density vanishes at 0 makes the density of the flow vanish on an inaccessible boundary, by construction.
The paper names a trained reference as future work; here the shape of any of them can be trained.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln
from jaxtyping import Array, Float

from fokkerflow.flow.interval import UnitPoint

Scalar = Float[Array, ""]
_ORDERS = np.arange(1.0, 65.0)  # of the series of the incomplete gamma function: exact to rounding up to x = 10
_SMALLEST_SCALE = 0.1
_NODES, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(8)[0] + 1.0), 0.5 * np.polynomial.legendre.leggauss(8)[1])
_NEAR_ONE = 0.05  # the mass beyond a point nearer to 1 than this is integrated by the eight nodes


@dataclass(frozen=True)
class Reference(abc.ABC):
    """A law on [0, 1] with density of order u^(lower_power - 1) at 0 and (1 - u)^(upper_power - 1) at 1.

    A trainable shape is 1 + exp(weight), so that training cannot lose the zero at the boundary.
    """

    kind: ClassVar[str]

    def initial_weight(self) -> Scalar | None:
        """The weight that training may move; None if there is nothing to train."""
        return None

    @property
    def is_uniform(self) -> bool:
        return False

    @property
    @abc.abstractmethod
    def lower_power(self) -> float:
        """Power of the density at 0, plus one; the smallest one if it is trained."""

    @property
    @abc.abstractmethod
    def upper_power(self) -> float:
        """Power of the density at 1, plus one; the smallest one if it is trained."""

    @abc.abstractmethod
    def log_density(self, u: UnitPoint, weight: Scalar | None) -> Scalar:
        """log p_Z(u)."""

    @abc.abstractmethod
    def cdf(self, u: UnitPoint, weight: Scalar | None) -> UnitPoint:
        """log P(Z < u) and log P(Z > u)."""

    @abc.abstractmethod
    def log_peak(self, weight: Scalar | None) -> Scalar:
        """log max p_Z."""


@dataclass(frozen=True)
class Uniform(Reference):
    """The uniform law, for coordinates without an inaccessible boundary, or with a chart that moves it to infinity."""

    kind: ClassVar[str] = "uniform"

    @property
    def is_uniform(self) -> bool:
        return True

    @property
    def lower_power(self) -> float:
        return 1.0

    @property
    def upper_power(self) -> float:
        return 1.0

    def log_density(self, u: UnitPoint, weight: Scalar | None) -> Scalar:
        return jnp.zeros_like(u.log_below)

    def cdf(self, u: UnitPoint, weight: Scalar | None) -> UnitPoint:
        return u

    def log_peak(self, weight: Scalar | None) -> Scalar:
        return jnp.zeros(())


@dataclass(frozen=True)
class _Shaped(Reference):
    shape: float = 2.5
    trainable: bool = False

    def __post_init__(self) -> None:
        if not self.shape > 1:
            raise ValueError(f"A {self.kind} reference needs shape > 1 to vanish at the boundary, got shape={self.shape:g}.")

    def initial_weight(self) -> Scalar | None:
        return jnp.asarray(math.log(self.shape - 1.0), jnp.float64) if self.trainable else None

    @property
    def lower_power(self) -> float:
        return 1.0 if self.trainable else self.shape

    def _shape(self, weight: Scalar | None) -> Any:
        return jnp.asarray(self.shape) if weight is None else 1.0 + jnp.exp(weight)


@dataclass(frozen=True)
class TruncatedGamma(_Shaped):
    """Gamma law truncated to [0, 1], by default the paper's: shape 5/2, scale 1/2. It vanishes at 0.

    p_Z(u) = u^(a-1) exp(-u/b) / N with N = e^(-1/b) S(1/b), where S(x) = sum_n x^n / (a (a+1) ... (a+n)) is the series of the
    incomplete gamma function (Abramowitz and Stegun 6.5.29): smooth in the shape a, all terms positive. Scale b >= 0.1.
    """

    kind: ClassVar[str] = "gamma"
    scale: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.scale >= _SMALLEST_SCALE:
            raise ValueError(f"A gamma reference needs scale >= {_SMALLEST_SCALE}, got scale={self.scale:g}.")

    @property
    def upper_power(self) -> float:
        return 1.0

    def log_density(self, u: UnitPoint, weight: Scalar | None) -> Scalar:
        a = self._shape(weight)
        return (a - 1) * u.log_below + jnp.exp(u.log_above) / self.scale - _log_gamma_series(a, 1 / self.scale)

    def cdf(self, u: UnitPoint, weight: Scalar | None) -> UnitPoint:
        """P(Z < u) = u^a exp((1-u)/b) S(u/b)/S(1/b); close to 1 its complement is the integral of the density over (u, 1)."""
        a, b = self._shape(weight), self.scale
        below = a * u.log_below + jnp.exp(u.log_above) / b
        below += _log_gamma_series(a, jnp.exp(u.log_below) / b) - _log_gamma_series(a, 1 / b)
        below = jnp.minimum(below, 0.0)
        near = u.log_above < math.log(_NEAR_ONE)
        direct = jnp.log(-jnp.expm1(jnp.where(near, -1.0, below)))
        rest = jnp.exp(jnp.where(near, u.log_above, math.log(_NEAR_ONE)))
        log_ratio = (a - 1) * jnp.log1p(-rest * _NODES) + rest * _NODES / b
        integral = u.log_above + jnp.log(jnp.sum(_WEIGHTS * jnp.exp(log_ratio))) - _log_gamma_series(a, 1 / b)
        return UnitPoint(below, jnp.where(near, integral, direct))

    def log_peak(self, weight: Scalar | None) -> Scalar:
        a = self._shape(weight)
        mode = jnp.minimum((a - 1) * self.scale, 1.0)
        return (a - 1) * jnp.log(mode) + (1 - mode) / self.scale - _log_gamma_series(a, 1 / self.scale)


@dataclass(frozen=True)
class SymmetricBeta(_Shaped):
    """Beta law with both parameters equal to `shape`: it vanishes at 0 and at 1, for two inaccessible boundaries."""

    kind: ClassVar[str] = "beta"

    @property
    def upper_power(self) -> float:
        return self.lower_power

    def log_density(self, u: UnitPoint, weight: Scalar | None) -> Scalar:
        a = self._shape(weight)
        return (a - 1) * (u.log_below + u.log_above) - betaln(a, a)

    def cdf(self, u: UnitPoint, weight: Scalar | None) -> UnitPoint:
        """I_u(a, a) = (u (1-u))^a / (a B(a, a)) sum_n (2a)_n / (a+1)_n u^n for u < 1/2 (DLMF 8.17.8), and its reflection."""
        a = self._shape(weight)
        log_nearest = jnp.minimum(u.log_below, u.log_above)
        mass = a * (u.log_below + u.log_above) - jnp.log(a) - betaln(a, a) + jnp.log(_beta_series(a, jnp.exp(log_nearest)))
        rest = jnp.log1p(-jnp.exp(jnp.minimum(mass, -0.5)))  # the mass is at most 1/2
        lower_half = u.log_below < u.log_above
        return UnitPoint(jnp.where(lower_half, mass, rest), jnp.where(lower_half, rest, mass))

    def log_peak(self, weight: Scalar | None) -> Scalar:
        a = self._shape(weight)
        return -2 * (a - 1) * math.log(2.0) - betaln(a, a)


REFERENCES: dict[str, type[Reference]] = {kind.kind: kind for kind in (Uniform, TruncatedGamma, SymmetricBeta)}
"""The reference laws, by the name that a configuration uses."""


def _log_gamma_series(a: Any, x: Any) -> Scalar:
    """log sum_n x^n / (a (a+1) ... (a+n))."""
    return jnp.log1p(jnp.sum(jnp.cumprod(x / (a + _ORDERS)))) - jnp.log(a)


def _beta_series(a: Any, u: Scalar) -> Scalar:
    """sum_n (2a)_n / (a+1)_n u^n."""
    return 1.0 + jnp.sum(jnp.cumprod(u * (2 * a + _ORDERS - 1.0) / (a + _ORDERS)))
