"""A few states and parameters of a model at which its formulas are tried out; always the same ones."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from fokkerflow.sde.constraint import Constraint
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE

_SEED = 20240229
_TRIES = 400
_SEARCHES = 50_000


def sample_states(sde: SDE, n: int) -> Float[np.ndarray, "n d"]:
    """States inside the domain, spread around the model's start."""
    rng = np.random.default_rng(_SEED)
    with np.errstate(over="ignore"):  # only for a start at the end of the floating point numbers
        return np.stack([_spread(domain, x, rng, n) for domain, x in zip(sde.domains, sde.start, strict=True)], -1)


def _spread(domain: Domain, x: float, rng: np.random.Generator, n: int) -> Float[np.ndarray, " n"]:
    if domain.is_interval:
        return rng.uniform(domain.lower, domain.upper, n)
    if domain.is_half_line:
        return domain.lower + (x - domain.lower) * np.exp(rng.normal(size=n))
    return x + max(1.0, abs(x)) * rng.normal(size=n)


def sample_parameters(sde: SDE, n: int) -> Float[np.ndarray, "n n_p"]:
    """Parameters around the typical ones that satisfy the constraints; the typical ones themselves come first."""
    rng = np.random.default_rng(_SEED)
    typical = np.array([sde.typical[name] for name in sde.parameters])
    scale = np.where(typical == 0, 1.0, np.abs(typical))
    draws, spread = [typical], 0.4
    for attempt in range(n * _TRIES):
        if len(draws) == n:
            break
        if attempt % _TRIES == _TRIES - 1:  # hardly any draw is valid: stay closer
            spread /= 2
        with np.errstate(over="ignore"):  # an infinite draw is not taken
            draw = typical + spread * scale * rng.uniform(-1, 1, typical.size)
        if _satisfies(sde, draw):
            draws.append(draw)
    return np.stack([draws[i % len(draws)] for i in range(n)])


def _satisfies(sde: SDE, p: Float[np.ndarray, " n_p"]) -> bool:
    values = {name: np.array([value]) for name, value in zip(sde.parameters, p, strict=True)}
    return bool(np.all(np.isfinite(p))) and all(c.violation(values) is None for c in sde.constraints)


def search_parameters(names: tuple[str, ...], constraints: tuple[Constraint, ...]) -> tuple[float, ...] | None:
    """Parameters of moderate size that satisfy the constraints, or None if random draws find none."""
    rng = np.random.default_rng(_SEED)
    logs = rng.normal(-0.5, 1.0, (_SEARCHES, len(names)))
    draws = np.exp(logs) * rng.choice([1.0, 1.0, -1.0], logs.shape)
    values = dict(zip(names, draws.T, strict=True))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        valid = np.logical_and.reduce(
            [np.broadcast_to(i.holds(values, np), _SEARCHES) for c in constraints for i in c.inequalities]
        )
    if not np.any(valid):
        return None
    best = np.argmin(np.where(valid, np.sum(logs**2, axis=1), np.inf))
    return tuple(float(value) for value in draws[best])
