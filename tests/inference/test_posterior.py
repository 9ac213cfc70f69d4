"""Draws: the posterior in closed form, both samplers, resumed runs, what is stored, and what is refused."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

import fokkerflow
from fokkerflow import CIR, GBM, OU, Posterior, Prior, Series, diagnose
from fokkerflow.inference import Progress
from fokkerflow.inference.chains import _calls
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.training.container import FileError
from tests.inference.closed_form import DATA, EXACT, Growing, increments, posterior_draws, series
from tests.training.trainings import OU_LAW, untrained

SHORT: dict[str, Any] = {"draws": 60, "warmup": 40, "chains": 2, "seed": 5, "pointwise": False}
POSTERIOR = Posterior(EXACT, DATA)


@functools.cache
def sampled(sampler: str) -> Any:
    return POSTERIOR.sample(sampler, draws=1500, warmup=300, chains=4, seed=1)


@pytest.mark.parametrize("sampler", ["nuts", "slice"])
def test_closed_form_posterior(sampler: str) -> None:
    data, exact = sampled(sampler), posterior_draws(DATA, 200_000)
    result = diagnose(data)
    assert result.ok, result.verdict
    for name, truth in exact.items():
        error = result.mcse[name]
        assert abs(float(data.posterior[name].mean()) - truth.mean()) < 4 * error
        drawn = np.sort(data.posterior[name].values.ravel())
        far = np.abs(drawn.searchsorted(np.quantile(truth, [0.05, 0.25, 0.5, 0.75, 0.95])) / drawn.size
                     - [0.05, 0.25, 0.5, 0.75, 0.95])  # fmt: skip
        assert np.all(far < 4 * np.sqrt([0.0475, 0.1875, 0.25, 0.1875, 0.0475]) / np.sqrt(result.ess_bulk[name]) + 5e-3)


def test_draws_of_both_samplers_satisfy_the_constraint_and_agree() -> None:
    """The constraint m > 0 cuts the posterior of falling data; what is left of the closed form is the truth."""
    data = series(seed=20)
    assert increments(data).mean() < 0
    exact = posterior_draws(data, 400_000)
    kept = (exact["mu"] > 0) & (exact["sigma"] ** 2 < 2 * exact["mu"])
    assert 0.05 < kept.mean() < 0.5
    for sampler, draws in (("nuts", 700), ("slice", 1500)):
        sample = Posterior(Growing(), data).sample(sampler, draws=draws, warmup=300, chains=4, seed=3, pointwise=False)
        p, result = sample.posterior, diagnose(sample)
        assert bool(((p.mu > 0) & (p.sigma > 0) & (p.sigma < np.sqrt(2 * p.mu))).all())
        for name, truth in exact.items():
            assert abs(float(p[name].mean()) - truth[kept].mean()) < 4 * result.mcse[name], (sampler, name)


def test_what_is_stored() -> None:
    data = sampled("nuts")
    assert set(data.groups()) == {"posterior", "sample_stats", "log_likelihood", "observed_data"}  # the prior is improper
    assert dict(data.posterior.sizes) == {"chain": 4, "draw": 1500}
    assert {"lp", "diverging", "acceptance_rate", "n_steps", "tree_depth", "energy", "step_size"} <= set(data.sample_stats)
    each = data.log_likelihood["transitions"]
    assert each.dims == ("chain", "draw", "transition")
    p = [float(data.posterior[name][2, 7]) for name in GBM().parameters]
    expected = EXACT.log_prob_batch(DATA.states[1:], DATA.states[:-1], DATA.gaps, p)
    np.testing.assert_allclose(each[2, 7], expected, rtol=1e-12)
    assert float(data.sample_stats.lp[2, 7]) == pytest.approx(float(POSTERIOR.log_density(p)), rel=1e-10)
    np.testing.assert_array_equal(data.observed_data["s"], DATA.states[:, 0])
    np.testing.assert_array_equal(data.observed_data["time"], DATA.times)
    attributes = data.posterior.attrs
    assert attributes["sampler"] == "nuts"
    assert attributes["seed"] == 1
    assert attributes["sde"] == "GBM"
    assert json.loads(attributes["versions"])["fokkerflow"] == fokkerflow.__version__
    assert attributes["prior"] == POSTERIOR.prior.words
    assert all(isinstance(value, (str, int, float)) for value in attributes.values())


def test_leave_one_out_and_file(tmp_path: Path) -> None:
    from fokkerflow.inference._arviz import arviz

    data = sampled("nuts")
    loo = arviz.loo(data, var_name="transitions")
    assert loo.n_data_points == len(DATA) - 1
    assert 1 < float(loo.p_loo) < 4  # two parameters
    data.to_netcdf(tmp_path / "posterior.nc")
    back = arviz.from_netcdf(tmp_path / "posterior.nc")
    np.testing.assert_array_equal(back.posterior["mu"], data.posterior["mu"])
    assert json.loads(back.posterior.attrs["guard"])["has_law"] is False


def test_pooled_series_are_one_posterior() -> None:
    """The increments of a series cut in two are those of the whole, except the one at the cut."""
    whole, cut = series(48), 20
    parts = [Series(whole.times[: cut + 1], whole.states[: cut + 1]), Series(whole.times[cut:], whole.states[cut:])]
    together = Posterior(EXACT, parts)
    p = [0.1, 0.3]
    assert float(together.log_density(p)) == pytest.approx(float(POSTERIOR.log_density(p)), rel=1e-12)
    data = together.sample("slice", **SHORT)
    np.testing.assert_array_equal(data.observed_data["series"], [0] * (cut + 1) + [1] * (len(whole) - cut))


class StopError(Exception):
    pass


def interrupt(at: float) -> Any:
    def progress(where: Progress) -> None:
        if where.share >= at:
            raise StopError

    return progress


@pytest.mark.parametrize("sampler", ["nuts", "slice"])
@pytest.mark.parametrize("share", [0.25, 0.75], ids=["warm-up", "sampling"])
def test_a_resumed_run_draws_the_same(sampler: str, share: float, tmp_path: Path) -> None:
    whole = POSTERIOR.sample(sampler, **SHORT)
    file = tmp_path / "run.checkpoint"
    with pytest.raises(StopError):
        POSTERIOR.sample(sampler, checkpoint=file, progress=interrupt(share), **SHORT)
    resumed = POSTERIOR.sample(sampler, checkpoint=file, **SHORT)
    for name in GBM().parameters:
        np.testing.assert_array_equal(resumed.posterior[name], whole.posterior[name])
    assert whole.sample_stats.equals(resumed.sample_stats)


KILLED = """
import os, signal, jax
jax.config.update("jax_enable_x64", True)
from tests.inference.closed_form import DATA, EXACT
from fokkerflow import Posterior
def progress(where):
    if where.share > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
Posterior(EXACT, DATA).sample("slice", draws=60, warmup=40, chains=2, seed=5, checkpoint={file!r}, checkpoint_every=0.0,
                              progress=progress)
"""


def test_killed_and_resumed(tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED.format(file=str(file))], cwd=root, env={**os.environ}, check=False)
    assert done.returncode == -signal.SIGKILL
    seen: list[Progress] = []
    resumed = POSTERIOR.sample("slice", checkpoint=file, progress=seen.append, **SHORT)
    assert seen[0].share > 0.25  # the first half is not drawn again
    whole = POSTERIOR.sample("slice", **SHORT)
    for name in GBM().parameters:
        np.testing.assert_array_equal(resumed.posterior[name], whole.posterior[name])


def test_more_draws_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    first = POSTERIOR.sample("slice", checkpoint=file, **SHORT)
    longer = POSTERIOR.sample("slice", checkpoint=file, **{**SHORT, "draws": 110})
    np.testing.assert_array_equal(longer.posterior["mu"][:, :60], first.posterior["mu"])
    assert longer.posterior.sizes["draw"] == 110


def test_checkpoints_of_other_runs_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    POSTERIOR.sample("slice", checkpoint=file, **{**SHORT, "draws": 5})
    for other, options, differing in (
        (POSTERIOR, {"seed": 6}, "seed: 5 there, 6 here"),
        (Posterior(EXACT, series(seed=4)), {}, "data: "),
        (Posterior(EXACT, DATA, Prior(GBM(), {"mu": dist.Normal(0, 1)})), {}, "prior: "),
    ):
        with pytest.raises(FileError, match=differing):
            other.sample("slice", checkpoint=file, **{**SHORT, **options})
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(FileError, match="truncated"):
        POSTERIOR.sample("slice", checkpoint=file, **SHORT)


def test_a_folder_that_cannot_be_written_to_is_noticed_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        POSTERIOR.sample("slice", checkpoint=tmp_path / "missing" / "run", progress=interrupt(0.0), **SHORT)


def test_progress_tells_where_it_is() -> None:
    seen: list[Progress] = []
    POSTERIOR.sample("nuts", progress=seen.append, **SHORT)
    assert seen[0].where == "warm-up 25 of 40"
    assert seen[-1].where == "draw 60 of 60"
    shares = [where.share for where in seen]
    assert shares == sorted(set(shares))
    assert (shares[0], shares[-1]) == (0.25, 1.0)
    assert seen[-1].seconds_left == 0
    assert len(seen) == 2 or seen[1].seconds_left < 100


def test_looks_are_about_a_second_apart() -> None:
    assert _calls(1, seconds=30.0, steps_left=2000) == 1  # compilation, or a slow density
    assert _calls(1, seconds=0.2, steps_left=2000) == 5
    assert _calls(8, seconds=0.0, steps_left=2000) == 8
    assert _calls(8, seconds=0.1, steps_left=30) == 2


def test_single_precision_mode_gives_the_same_draws() -> None:
    whole = POSTERIOR.sample("slice", **SHORT)
    with jax.enable_x64(False):
        narrow = Posterior(EXACT, DATA).sample("slice", **SHORT)
        assert jax.config.jax_enable_x64 is False
    np.testing.assert_array_equal(narrow.posterior["mu"], whole.posterior["mu"])


def test_a_trained_density_brings_its_law_and_its_guard() -> None:
    surrogate = fokkerflow.Surrogate(untrained(OU_LAW, dt_max=0.5))
    data = fokkerflow.simulate(OU(), OU().typical, dt=0.25, n=30, seed=2)
    posterior = Posterior(surrogate, data)
    assert "restricted to the law" in posterior.prior.words
    assert float(posterior.log_density([2.0, 0.5, 0.3])) > -np.inf
    assert float(posterior.log_density([2.0, 0.5, 0.6])) == -np.inf  # sigma up to 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fokkerflow.inference.guard_share.OutsideLawWarning)
        drawn = posterior.sample("slice", **SHORT)
    assert bool((drawn.posterior.sigma < 0.5).all())
    assert drawn.prior.sizes["draw"] == 1000
    assert json.loads(drawn.posterior.attrs["artifact"])["longest_dt"] == 0.5
    assert json.loads(drawn.posterior.attrs["guard"])["has_law"] is True


TRACES: list[int] = []


class Counting(Growing):
    """Counts how often it is traced."""

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        TRACES.append(1)
        return super().log_density(x1, x0, dt, p, t0)


def test_data_of_similar_length_share_one_compilation() -> None:
    density = Counting()
    Posterior(density, series(45)).sample("slice", **SHORT)
    first = len(TRACES)
    assert first > 0
    Posterior(density, series(47, seed=9)).sample("slice", **{**SHORT, "seed": 8, "draws": 90})
    assert len(TRACES) == first


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Posterior(EXACT, DATA).sample("gibbs"), ValueError, "Got sampler 'gibbs', expected one of 'nuts', 'slice'"),
        (lambda: Posterior(EXACT, DATA).sample(draws=0), ValueError, "Got draws = 0, expected a whole number, 1 or more"),
        (lambda: Posterior(EXACT, DATA).sample(chains=2.5), ValueError, "Got chains = 2.5"),
        (lambda: Posterior(EXACT, DATA).sample(expansions=3), TypeError, "expected some of: acceptance, doublings"),
        (lambda: Posterior(EXACT, DATA, Prior(CIR())), ValueError, "a prior of CIR and a density of GBM"),
        (lambda: Posterior(EXACT, DATA, {"mu": 0.1}), TypeError, "Got dict as the prior, expected a fokkerflow.Prior"),
        (lambda: Posterior(GBM(), DATA), TypeError, "as the density, expected one of fokkerflow.density"),
        (lambda: Posterior(EXACT, []), ValueError, "no series"),
        (lambda: Posterior(EXACT, 3.0), TypeError, "Got float as the series, expected a fokkerflow.Series or a list"),
        (lambda: Posterior(EXACT, DATA).maximum("median"), ValueError, "expected one of 'likelihood', 'posterior'"),
        (lambda: Posterior(EXACT, DATA).profile(points=2), ValueError, "at least 3"),
        (lambda: Posterior(EXACT, DATA).evidence(particles=100, moves=32), ValueError, "a multiple of moves"),
        (lambda: Posterior(EXACT, DATA).evidence(), ValueError, "flat and unbounded: it has no draws, and no evidence"),
    ],
)
def test_bad_input_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
