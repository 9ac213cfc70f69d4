"""The posterior of an SDE's parameters: a density, data and a prior, and what can be asked of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow._precision import in_float64
from fokkerflow.densities.density import Density
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.chains import Checkpoints, Progress, Run, sample
from fokkerflow.inference.errors import InferenceError
from fokkerflow.inference.likelihood import within_reach
from fokkerflow.inference.peak import Peak, highest
from fokkerflow.inference.prior import Prior
from fokkerflow.inference.run_file import digest
from fokkerflow.inference.target import UNCONSTRAINED, Frame, Target, Weights, parameters, value_and_gradient
from fokkerflow.sde.series import Series

_STARTS = 32
_PRIOR_DRAWS = 1000
_DISPERSED = 2.0
"""Chains start this many standard deviations of the Gaussian at the peak apart, so that R-hat can tell."""


class Posterior:
    """The posterior of the parameters given discretely observed data.

    **Arguments:**

    - `density`: a transition density, exact or trained.
    - `series`: the data; several independent series of the same model are pooled.
    - `prior`: a `Prior`; by default flat within the constraint of the model, and within the law of a trained density.

    ```python
    posterior = fokkerflow.Posterior(fokkerflow.density("exact", fokkerflow.OU()), series)
    data = posterior.sample(seed=1)
    print(fokkerflow.diagnose(data))
    ```
    """

    @in_float64
    def __init__(self, density: Density, series: Series | Sequence[Series], prior: Prior | None = None) -> None:
        if not isinstance(density, Density):
            raise TypeError(f"Got {density!r} as the density, expected one of fokkerflow.density or fokkerflow.load.")
        law = density.trained.law if isinstance(density, Surrogate) else None
        prior = Prior(density.sde) if prior is None else prior
        if not isinstance(prior, Prior):
            raise TypeError(
                f"Got {type(prior).__name__} as the prior, expected a fokkerflow.Prior(sde, {{name: distribution}})."
            )
        if prior.sde != density.sde:
            raise ValueError(f"Got a prior of {prior.sde.label} and a density of {density.sde.label}, expected the same model.")
        self.density = density
        self.series: tuple[Series, ...] = (series,) if isinstance(series, Series) else tuple(series)
        self.target = Target(density, within_reach(density, list(self.series)), prior.density)
        self.prior = prior if law is None or prior.law is not None else prior.restricted(law)
        self.target = Target(density, self.target.data, self.prior.density)

    @in_float64
    def sample(
        self,
        sampler: str = "nuts",
        *,
        draws: int = 1000,
        warmup: int = 1000,
        chains: int = 4,
        seed: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 10.0,
        progress: Callable[[Progress], None] | None = None,
        log_likelihood: bool = True,
        **options: Any,
    ) -> Any:
        """Draw from the posterior.

        **Arguments:**

        - `sampler`: ``"nuts"``, or ``"slice"``, the paper's.
        - `draws`, `warmup`: of each chain.
        - `chains`: they run in parallel, from dispersed starting points.
        - `seed`: equal seeds give equal draws on one machine.
        - `checkpoint`: a file that is written every `checkpoint_every` seconds, and when the sampling ends or is interrupted.
          If it exists, the sampling goes on from there, also to more draws than before. Delete it when the result is safe.
        - `progress`: called with a `Progress` after every few steps.
        - `log_likelihood`: whether to store the log density of each transition under each draw, which leave-one-out needs.
        - `options`: of the sampler: `acceptance` and `doublings` of NUTS, `expansions` of the slice sampler.

        **Returns:** ArviZ InferenceData with the groups posterior, sample_stats, log_likelihood, observed_data and prior (if
        it is proper). The attributes of the posterior say what was used, and how.

        **Raises:** ValueError for settings that make no sense, FileError for a checkpoint of another run, InferenceError if no
        starting point can be found.
        """
        from fokkerflow.inference import results  # noqa: PLC0415  ArviZ takes seconds to import

        started = time.monotonic()
        run = Run(_whole("warmup", warmup), _whole("draws", draws), _whole("chains", chains), seed)
        method = _sampler(sampler, options)
        checkpoints = None
        if checkpoint is not None:
            checkpoints = Checkpoints(Path(checkpoint), checkpoint_every, self._identity(method, run))
        drawn = sample(method, self.target, lambda: self._begin(run), run, checkpoints=checkpoints, progress=progress)
        p = drawn.draws["p"]
        attributes = results.attributes(
            self.density,
            p,
            self.series,
            sampler=sampler,
            seed=seed,
            warmup=warmup,
            warmup_divergences=drawn.warmup_divergences,
            prior=self.prior.words,
            sampling_seconds=drawn.seconds,
        )
        prior_key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), 2**31)
        data = results.inference_data(
            self.target,
            self.series,
            drawn.draws,
            prior=self.prior.sample(prior_key, _PRIOR_DRAWS) if self.prior.proper else None,
            attributes=attributes,
            log_likelihood=log_likelihood,
        )
        data.posterior.attrs["seconds"] = time.monotonic() - started
        return data

    @in_float64
    def log_density(self, params: Any) -> Float[Array, ""]:
        """Log likelihood plus log prior at one parameter vector, up to a constant."""
        from fokkerflow.inference.likelihood import log_likelihood  # noqa: PLC0415

        return log_likelihood(self.density, list(self.series), params) + self.prior.log_density(params)

    def peak(self, weights: Weights, seed: int = 0) -> Peak:
        """The maximum in unconstrained coordinates."""

        def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = value_and_gradient(self.target, weights, u)
            return float(value), np.asarray(gradient)

        try:
            return highest(objective, self._starts(np.random.default_rng(seed)))
        except ValueError as error:
            raise InferenceError(
                f"{self.density.sde.label}: {error} ({_STARTS} were tried). The data may be impossible under the prior, or "
                f"outside what the density can evaluate. {self.prior.words}"
            ) from None

    def _starts(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Typical parameters, draws of the prior if it has any, and points around them."""
        transform, sde, n = self.prior.transform, self.density.sde, self.target.dimension
        typical = np.array([sde.typical[name] for name in sde.parameters])
        points = [np.zeros(n)]
        if bool(transform.inside(jnp.asarray(typical))):
            points.insert(0, np.asarray(transform.unconstrained(jnp.asarray(typical))))
        if self.prior.proper:
            key = jax.random.key(int(rng.integers(2**31)), impl="threefry2x32")
            drawn = jax.vmap(transform.unconstrained)(jnp.asarray(self.prior.sample(key, _STARTS // 2)))
            points += list(np.asarray(drawn))
        return points + [points[0] + rng.normal(size=n) for _ in range(_STARTS - len(points))]

    def _begin(self, run: Run) -> tuple[Frame, Float[Array, "chains n"]]:
        """Coordinates from the curvature at the peak, and starting points around it where the posterior is finite."""
        peak = self.peak(UNCONSTRAINED, run.seed)
        frame = frame_at(self.target, peak)
        rng = np.random.default_rng([run.seed, 1])
        return frame, jnp.asarray([self._start(frame, rng) for _ in range(run.chains)])

    def _start(self, frame: Frame, rng: np.random.Generator) -> np.ndarray:
        z = np.zeros(self.target.dimension)
        for attempt in range(20):
            z = rng.normal(size=len(z)) * _DISPERSED * 0.8**attempt
            value, gradient = value_and_gradient(self.target, UNCONSTRAINED, frame.unconstrained(jnp.asarray(z)))
            if np.isfinite(value) and np.all(np.isfinite(gradient)):
                return z
        return np.zeros_like(z)

    def _identity(self, sampler: Any, run: Run) -> dict[str, Any]:
        """All that the draws depend on, except how many there are."""
        return {
            "sampler": repr(sampler),
            "warmup": run.warmup,
            "chains": run.chains,
            "seed": run.seed,
            "model": self.density.sde.label,
            "density": digest(self.density),
            "data": digest([(one.times, one.states) for one in self.series]),
            "prior": self.prior.words + " " + digest(self.prior.density.distributions),
        }


def frame_at(target: Target, peak: Peak) -> Frame:
    """The frame of a peak in unconstrained coordinates."""
    covariance = peak.covariance
    _, jacobian = parameters(target, jnp.asarray(peak.point))
    precision = np.linalg.inv(np.asarray(jacobian) @ covariance @ np.asarray(jacobian).T)
    widths = 3 / np.sqrt(np.diag(precision))
    return Frame(jnp.asarray(peak.point), jnp.asarray(np.linalg.cholesky(covariance)), jnp.asarray(widths))


def _sampler(name: str, options: dict[str, Any]) -> Any:
    from fokkerflow.inference.nuts import Nuts  # noqa: PLC0415  BlackJAX takes half a second to import
    from fokkerflow.inference.slice_sampler import Slice  # noqa: PLC0415

    known = {sampler.name: sampler for sampler in (Nuts, Slice)}
    if name not in known:
        raise ValueError(f"Got sampler {name!r}, expected one of {', '.join(map(repr, known))}.")
    try:
        return known[name](**options)
    except TypeError:
        fields = ", ".join(known[name].__dataclass_fields__)
        raise TypeError(f"Got options {', '.join(options)} for sampler {name!r}, expected some of: {fields}.") from None


def _whole(name: str, value: Any) -> int:
    least = 0 if name == "warmup" else 1
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"Got {name} = {value!r}, expected a whole number, {least} or more.")
    return int(value)
