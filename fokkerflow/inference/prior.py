"""The prior: a NumPyro distribution for each parameter, within the constraint of the model and the law of an artifact.

Without distributions it is the paper's (section 5): flat within the constraint, and, for a trained density, within the law
that it was trained for.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.inference.transform import Range, Transform
from fokkerflow.sde.model import SDE
from fokkerflow.sde.validation import parameter_vector
from fokkerflow.training.law import Law, Marginal, ShareOfRange, TruncatedNormal

_PROBE = 4096
_CUT_IS_NEWS = 0.99
"""A prior of which the law keeps less than this share is worth a warning."""
_NOTHING_LEFT = 1e-3
_NORMAL_REACH = 3.0
"""Standard deviations of a normal training law that count as inside, as in the guard."""


class PriorWarning(UserWarning):
    """A prior was cut to the training law."""


class PriorDensity(eqx.Module):
    """What samplers need of a prior: the transform, and the log density up to a constant. None is flat."""

    distributions: tuple[Any, ...]
    transform: Transform = eqx.field(static=True)

    def log_density(self, p: Float[Array, " n"]) -> Float[Array, ""]:
        """Unnormalised; -inf outside constraint and law."""
        inside = self.transform.inside(p)
        typical = jnp.array([self.transform.sde.typical[name] for name in self.transform.sde.parameters])
        total = jnp.zeros(())
        for d, value, harmless in zip(self.distributions, p, typical, strict=True):
            total = total if d is None else total + d.log_prob(jnp.where(inside, value, harmless))
        return jnp.where(inside, total, -jnp.inf)


class Prior:
    """Independent distributions of the parameters, restricted to where the model and a trained density are valid.

    **Arguments:**

    - `sde`: the model.
    - `distributions`: NumPyro distributions by name of the parameter, such as ``{"beta": dist.LogNormal(1.0, 0.5)}``.
      Parameters that are left out are flat.
    - `law`: the law of a trained density (``surrogate.trained.law``): the prior is restricted to it. A `Posterior` of a trained
      density does so by itself.
    - `relevant`: the states and parameters that the law matters for (``surrogate.trained.relevant``); distributions of other
      parameters, which only shift the density, are not cut.

    **Raises:** TypeError for what is no scalar continuous distribution; ValueError for unknown names, and for a
    prior of which constraint and law leave nothing.

    ```python
    import numpyro.distributions as dist

    prior = Prior(fokkerflow.Heston(), {"beta": dist.LogNormal(1.0, 0.5), "rho": dist.Uniform(-1, 0)})
    ```
    """

    @in_float64
    def __init__(
        self,
        sde: SDE,
        distributions: Mapping[str, Any] | None = None,
        *,
        law: Law | None = None,
        relevant: Sequence[str] | None = None,
    ) -> None:
        given = dict(distributions or {})
        _check_names(sde, given)
        supports = {name: _support(name, d) for name, d in given.items()}
        limits = _limits(sde, law)
        if relevant is not None:
            limits = {name: limit for name, limit in limits.items() if name in relevant or name not in given}
        everywhere = {name: supports.get(name, Range()) & limits.get(name, Range()) for name in sde.parameters}
        self.sde, self.law, self.given, self._limited = sde, law, given, limits
        in_double = {name: jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), d) for name, d in given.items()}
        self.density = PriorDensity(tuple(in_double.get(n) for n in sde.parameters), Transform.of(sde, everywhere))
        self._check_overlap()

    @property
    def transform(self) -> Transform:
        return self.density.transform

    def restricted(self, law: Law, relevant: Sequence[str] | None = None) -> Prior:
        """The same prior within the law of a trained density."""
        return Prior(self.sde, self.given, law=law, relevant=relevant)

    @in_float64
    def log_density(self, params: Any) -> Float[Array, ""]:
        """The log density at one parameter vector, up to a constant; -inf outside constraint and law."""
        return _log_density(self.density, jnp.asarray(parameter_vector(self.sde, params)))

    @property
    def proper(self) -> bool:
        """Whether it can be drawn from: every flat parameter has a finite range."""
        return self._improper() is None

    @in_float64
    def sample(self, key: PRNGKeyArray, n: int) -> Float[np.ndarray, "n n_p"]:
        """`n` independent draws, by rejection.

        **Raises:** ValueError for an improper prior, naming the parameter that is unbounded.
        """
        improper = self._improper()
        if improper is not None:
            raise ValueError(
                f"{self.sde.label}: the prior of {improper!r} is flat and unbounded: it has no draws, and no evidence. "
                f"Give it a distribution: Prior(sde, {{{improper!r}: numpyro.distributions....}})."
            )
        boxes, kept, tries = self._boxes(), [np.empty((0, len(self.sde.parameters)))], 0
        while sum(map(len, kept)) < n:
            draws = np.asarray(self._candidates(jax.random.fold_in(key, tries), boxes, max(n, _PROBE)))
            kept.append(draws[np.asarray(_inside(self.transform, jnp.asarray(draws)))])
            tries += 1
            if tries > 100 and sum(map(len, kept)) < tries:
                raise ValueError(f"{self.sde.label}: constraint and law keep almost no draw of the prior. {self.words}")
        return np.concatenate(kept)[:n]

    @property
    def words(self) -> str:
        """The prior as a sentence that can stand under a figure."""
        parts = [self._word(i, name) for i, name in enumerate(self.sde.parameters)]
        constraint = "; ".join(c.text for c in self.sde.constraints)
        within = f" within the constraint {constraint}" if constraint else ""
        law = "" if self.law is None else ", restricted to the law that the density was trained for"
        return f"{', '.join(parts)}{within}{law}."

    def _word(self, i: int, name: str) -> str:
        here, given = self.transform.ranges[i], self.given.get(name)
        what = "flat" if given is None else type(given).__name__
        share = "" if here.share == (0, 1) else f" between {here.share[0]:.4g} and {here.share[1]:.4g} of its range"
        bounded = math.isfinite(here.lower) or math.isfinite(here.upper)
        return f"{name} {what}" + share + (f" on ({here.lower:.4g}, {here.upper:.4g})" if bounded else "")

    def _check_overlap(self) -> None:
        """Nothing left is an error; something cut off by the law is said aloud."""
        for name, here in zip(self.sde.parameters, self.transform.ranges, strict=True):
            if not here.lower < here.upper or not here.share[0] < here.share[1]:
                raise ValueError(
                    f"{self.sde.label}: the prior of {name} lies outside the law that the density was trained for "
                    f"({self._limit_words(name)}). Choose one that overlaps, or train a density for a wider law."
                )
        if self.law is None or not self.given:
            return
        draws = self._drawn_given(jax.random.key(0, impl="threefry2x32"))
        for name in set(draws) & set(self._limited):
            self._check_share(name, draws[name])

    def _check_share(self, name: str, values: Float[np.ndarray, " k"]) -> None:
        here = self.transform.ranges[self.sde.parameters.index(name)]
        kept = float(np.mean((values > here.lower) & (values < here.upper)))
        if kept < _NOTHING_LEFT:
            raise ValueError(
                f"{self.sde.label}: the law that the density was trained for ({self._limit_words(name)}) keeps {kept:.2%} "
                f"of the prior of {name}. Choose one that overlaps, or train a density for a wider law."
            )
        if kept < _CUT_IS_NEWS:
            message = f"{self.sde.label}: the prior of {name} is cut to the training law, {self._limit_words(name)}"
            warnings.warn(f"{message}, which keeps {kept:.0%} of it.", PriorWarning, stacklevel=5)

    def _limit_words(self, name: str) -> str:
        limit = self._limited.get(name, Range())
        return f"{name} from {limit.lower:.4g} to {limit.upper:.4g}"

    def _drawn_given(self, key: PRNGKeyArray) -> dict[str, Float[np.ndarray, " k"]]:
        keys = jax.random.split(key, len(self.given))
        return {name: np.asarray(d.sample(k, (_PROBE,))) for (name, d), k in zip(self.given.items(), keys, strict=True)}

    def _improper(self) -> str | None:
        boxes = self._boxes()
        flat = (name for name in self.sde.parameters if name not in self.given)
        return next((name for name in flat if not np.all(np.isfinite(boxes[name]))), None)

    @np.errstate(all="ignore")  # unbounded ranges overflow
    def _boxes(self) -> dict[str, tuple[float, float]]:
        """For each flat parameter an interval that holds its range, whatever the parameters before it are.

        Taken at corners and random points of the others; exact for bounds that are monotone in each parameter, with a margin
        for those that are not.
        """
        rng, boxes = np.random.default_rng(0), {}
        values: dict[str, Any] = {}
        size = _PROBE + 2 ** len(self.sde.parameters)
        corners = np.array(list(itertools.product((0.0, 1.0), repeat=len(self.sde.parameters))))
        for i in self.transform.order:
            name = self.sde.parameters[i]
            with np.errstate(all="ignore"):  # of parameters without ends
                low, high = (np.broadcast_to(end, size) for end in self.transform.bounds(i, values, np))
            boxes[name] = (float(np.min(low)), float(np.max(high)))
            width = boxes[name][1] - boxes[name][0]
            if np.isfinite(width) and np.ptp(high) + np.ptp(low) > 0:
                here = self.transform.ranges[i]
                boxes[name] = (max(boxes[name][0] - width / 20, here.lower), min(boxes[name][1] + width / 20, here.upper))
            share = np.concatenate([corners[:, i], rng.uniform(size=_PROBE)])
            with np.errstate(invalid="ignore", over="ignore"):  # of a range without ends
                ends = np.nextafter(boxes[name][0], np.inf), np.nextafter(boxes[name][1], -np.inf)
                values[name] = np.where(share < 1, ends[0] + (ends[1] - ends[0]) * share, ends[1])
        return boxes

    def _candidates(self, key: PRNGKeyArray, boxes: Mapping[str, tuple[float, float]], n: int) -> Float[Array, "n n_p"]:
        columns = []
        for name, d, k in zip(self.sde.parameters, self.density.distributions, jax.random.split(key, len(boxes)), strict=True):
            low, high = boxes[name]
            flat = d is None
            columns.append(jax.random.uniform(k, (n,), jnp.float64, low, high) if flat else d.sample(k, (n,)))
        return jnp.stack(columns, axis=1)


@eqx.filter_jit
def _log_density(density: PriorDensity, p: Float[Array, " n"]) -> Float[Array, ""]:
    return density.log_density(p)


@eqx.filter_jit
def _inside(transform: Transform, p: Float[Array, "k n"]) -> Array:
    return jax.vmap(transform.inside)(p)


def _limits(sde: SDE, law: Law | None) -> dict[str, Range]:
    """Where a training law is."""
    if law is None:
        return {}
    if law.sde != sde:
        raise ValueError(f"Got a law of {law.sde.label} for a prior of {sde.label}, expected one of the same model.")
    return {name: _limit(law.parameters[name]) for name in sde.parameters}


def _limit(marginal: Marginal) -> Range:
    if isinstance(marginal, ShareOfRange):
        return Range(share=(marginal.low, marginal.high))
    if isinstance(marginal, TruncatedNormal):
        reach = _NORMAL_REACH * marginal.sd
        return Range(max(marginal.low, marginal.mean - reach), min(marginal.high, marginal.mean + reach))
    return Range(marginal.low, marginal.high)


def _check_names(sde: SDE, given: Mapping[str, Any]) -> None:
    unknown = [name for name in given if name not in sde.parameters]
    if unknown:
        raise ValueError(
            f"{sde.label}: got a prior of {', '.join(map(repr, unknown))}, expected some of {', '.join(sde.parameters)}."
        )


def _support(name: str, distribution: Any) -> Range:
    """The interval that a scalar continuous distribution lives on."""
    import numpyro.distributions as dist  # noqa: PLC0415  only those who give distributions pay for it

    if not isinstance(distribution, dist.Distribution):
        raise TypeError(f"prior of {name}: got {distribution!r}, expected a NumPyro distribution such as dist.Normal(0, 1).")
    support, kind = distribution.support, type(distribution).__name__
    if distribution.event_shape or distribution.batch_shape:
        raise TypeError(f"prior of {name}: got {kind} of shape {distribution.shape()}, expected a distribution of one number.")
    if support.is_discrete or isinstance(distribution, dist.Delta):
        raise TypeError(f"prior of {name}: got {kind}, which is discrete, expected a continuous distribution.")
    ends = (getattr(support, f"{end}_bound", None) for end in ("lower", "upper"))
    low, high = (float(d) if e is None else float(e) for e, d in zip(ends, (-math.inf, math.inf), strict=True))
    return Range(low, high)
