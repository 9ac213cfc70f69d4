"""The posterior of an SDE's parameters: a density, data and a prior, and what can be asked of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Float

from fokkerflow._precision import in_float64
from fokkerflow.densities.density import Density
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.chains import Checkpoints, Progress, Run, sample
from fokkerflow.inference.estimate import Estimate, estimate
from fokkerflow.inference.likelihood import log_likelihood, within_reach
from fokkerflow.inference.prior import Prior
from fokkerflow.inference.profile import Profile, profiles
from fokkerflow.inference.run_file import digest
from fokkerflow.inference.starts import begin_chains, find_peak
from fokkerflow.inference.target import LIKELIHOOD, POSTERIOR, Frame, Target
from fokkerflow.sde.series import Series

if TYPE_CHECKING:
    from fokkerflow.inference.evidence import Evidence

_PRIOR_DRAWS = 1000
_KINDS = {"likelihood": (LIKELIHOOD, "maximum likelihood"), "posterior": (POSTERIOR, "maximum a posteriori")}


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
        prior = Prior(density.sde) if prior is None else prior
        if not isinstance(prior, Prior):
            raise TypeError(
                f"Got {type(prior).__name__} as the prior, expected a fokkerflow.Prior(sde, {{name: distribution}})."
            )
        if prior.sde != density.sde:
            raise ValueError(f"Got a prior of {prior.sde.label} and a density of {density.sde.label}, expected the same model.")
        if not isinstance(series, (Series, Sequence)):
            raise TypeError(f"Got {type(series).__name__} as the series, expected a fokkerflow.Series or a list of them.")
        if isinstance(density, Surrogate) and prior.law is None:
            prior = prior.restricted(density.trained.law, density.trained.relevant)
        self.density, self.prior = density, prior
        self.series: tuple[Series, ...] = (series,) if isinstance(series, Series) else tuple(series)
        self.target = Target(density, within_reach(density, list(self.series)), prior.density)

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
        pointwise: bool = True,
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
        - `pointwise`: whether to store the log density of each transition under each draw, which leave-one-out needs.
        - `options`: of the sampler: `acceptance` and `doublings` of NUTS, `expansions` of the slice sampler.

        **Returns:** ArviZ InferenceData with the groups posterior, sample_stats, log_likelihood, observed_data and prior (if
        it is proper). The attributes of the posterior say what was used, and how.

        **Raises:** ValueError for settings that make no sense, FileError for a checkpoint of another run, InferenceError if no
        starting point can be found.
        """
        started = time.monotonic()
        run = Run(_whole("warmup", warmup), _whole("draws", draws), _whole("chains", chains), seed)
        method = _sampler(sampler, options)
        checkpoints = None
        if checkpoint is not None:
            checkpoints = Checkpoints(Path(checkpoint), checkpoint_every, self._identity(method, run))
        drawn = sample(
            method,
            self.target,
            lambda: self._begin(run),
            run,
            checkpoints=checkpoints,
            progress=progress,
        )
        from fokkerflow.inference import results  # noqa: PLC0415  ArviZ takes seconds to import

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
            pointwise=pointwise,
        )
        data.posterior.attrs["seconds"] = time.monotonic() - started
        return data

    @in_float64
    def log_density(self, params: Any) -> Float[Array, ""]:
        """Log likelihood plus log prior at one parameter vector, up to a constant."""
        return log_likelihood(self.density, list(self.series), params) + self.prior.log_density(params)

    @in_float64
    def maximum(self, kind: str = "likelihood", *, seed: int = 0) -> Estimate:
        """The maximum of the likelihood, or of the posterior density, within constraint and law.

        **Arguments:**

        - `kind`: ``"likelihood"`` or ``"posterior"``. The latter is a maximum with respect to the parameters themselves.
        - `seed`: of the starting points.

        **Returns:** an `Estimate`, with standard errors from the Hessian.
        """
        if kind not in _KINDS:
            raise ValueError(f"Got kind = {kind!r}, expected one of {', '.join(map(repr, _KINDS))}.")
        weights, words = _KINDS[kind]
        return estimate(self.target, find_peak(self.target, self.prior, weights, seed), words)

    @in_float64
    def profile(
        self, *, points: int = 15, seed: int = 0, progress: Callable[[str, float], None] | None = None
    ) -> list[Profile]:
        """The profile likelihood along each parameter: the others are maximised over at every point.

        **Arguments:**

        - `points`: of each profile, over three standard errors to either side of the maximum.
        - `progress`: called with the name of the parameter and the share of the work that is done.
        """
        if points < 3:
            raise ValueError(f"Got points = {points}, expected at least 3.")
        peak = find_peak(self.target, self.prior, LIKELIHOOD, seed)
        best = estimate(self.target, peak, "maximum likelihood")
        return list(profiles(self.target, best, peak, points=points, progress=progress))

    @in_float64
    def evidence(
        self,
        *,
        particles: int = 1024,
        moves: int = 32,
        runs: int = 4,
        seed: int = 0,
        progress: Callable[[str, float], None] | None = None,
    ) -> Evidence:
        """The log evidence by tempered sequential Monte Carlo, with a standard error from independent runs.

        **Arguments:**

        - `particles`: of each run; a multiple of `moves`.
        - `moves`: length of the chains that move the particles.
        - `runs`: independent repetitions.
        - `progress`: called with where it is, in words, and a rough share of the work that is done.

        **Raises:** ValueError for an improper prior, which has no evidence.
        """
        from fokkerflow.inference.evidence import evidence  # noqa: PLC0415  BlackJAX takes half a second to import

        if moves < 2 or particles < 2 * moves or particles % moves or runs < 1:
            raise ValueError(
                f"Got particles = {particles}, moves = {moves}, runs = {runs}: expected particles to be a multiple of moves, "
                "twice moves or more, and at least one run."
            )
        key = jax.random.key(seed, impl="threefry2x32")
        return evidence(key, self.target, self.prior.sample, particles=particles, moves=moves, runs=runs, progress=progress)

    def _begin(self, run: Run) -> tuple[Frame, Float[Array, "chains n"]]:
        begun = begin_chains(self.target, self.prior, run.chains, run.seed)
        import fokkerflow.inference.results  # noqa: F401, PLC0415  ArviZ takes seconds, while the sampler is being compiled

        return begun

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
