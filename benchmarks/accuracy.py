"""How accurate are the shipped densities, by the paper's own definitions, beside the paper's figures?

    python benchmarks/accuracy.py [--record]        # or: make accuracy, or: fokkerflow benchmark accuracy

Every error is against an exact density (for SVCEV against one whose own error is below 1e-6). The paper has one trajectory a
model; here every row of log likelihoods is over several, made by its recipe with seeds that nobody chose: 1, 2, 3, ...
With --record the answer is kept in results/accuracy.json.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from errors import (
    flow_draws,
    log_ratios,
    posterior_like,
    relative_errors,
    relative_l2,
    star,
    trajectory,
)
from jaxtyping import Float
from recording import run
from rich.console import Console
from rich.table import Table

from fokkerflow import BDFS, SVCEV, Heston
from fokkerflow.densities import Density, Surrogate, density, load
from fokkerflow.inference import log_likelihoods
from fokkerflow.sde.model import SDE
from fokkerflow.sde.moments import moments
from fokkerflow.sde.series import Series
from fokkerflow.training import laws

SEEDS = range(1, 6)
TEST_DRAWS, POSTERIOR_DRAWS = 100, 60
_RULED_OUT = 10.0


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table: what, the paper's figure, the target, and what was measured."""

    what: str
    paper: float | None
    target: float | None
    measured: float
    note: str = ""

    @property
    def reached(self) -> bool | None:
        return None if self.target is None else bool(self.measured <= self.target)


def test_draws(sde: SDE, seed: int) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, "k n"]]:
    """Starts and parameters from the paper's test law."""
    return laws.shipped("paper-test", sde).sample(np.random.default_rng(seed), TEST_DRAWS)


def likelihood_rows(
    q: Density, p: Density, dt: float, n: int, paper: tuple[Any, Any, Any], target: tuple[Any, Any, Any]
) -> Iterator[Row]:
    """Relative errors of the log likelihood at mu* and over the test law, and what a posterior feels of them."""
    sde, at_star, over_law, spreads = q.sde, [], [], []
    for seed in SEEDS:
        series = trajectory(sde, dt, n, seed)
        at_star.append(relative_errors(q, p, series, star(sde))[0])
        over_law.append(relative_errors(q, p, series, test_draws(sde, seed)[1]))
        spreads.append(spread(q, p, series, seed))
    label, errors = f"{sde.label}, gap {dt:g}, {n} observations: ", np.concatenate(over_law)
    over = f"over {len(SEEDS)} trajectories; largest "
    yield Row(
        label + "log likelihood at mu*", paper[0], target[0], float(np.median(at_star)), f"median {over}{max(at_star):.1e}"
    )
    yield Row(label + "mean over the test law", paper[1], target[1], float(np.mean(errors)), f"{over}{np.max(errors):.1e}")
    yield Row(label + "median over the test law", paper[2], target[2], float(np.median(errors)))
    note = f"median {over}{max(spreads):.1e}"
    yield Row(label + "spread over posterior draws, nats", None, 0.02, float(np.median(spreads)), note)


def spread(q: Density, p: Density, series: Series, seed: int) -> float:
    """Standard deviation of the error of the log likelihood over draws like the posterior's, which are Gaussian by information.

    Draws that the data rule out (ten nats below the best) are left out: with few observations the Gaussian reaches there.
    """
    draws = posterior_like(p, series, star(q.sde)[0], POSTERIOR_DRAWS, seed)
    exact, found = (np.asarray(log_likelihoods(d, series, draws)) for d in (p, q))
    possible = exact > exact.max() - _RULED_OUT
    return float(np.std((found - exact)[possible], ddof=1))


def l2_rows(q: Density, p: Density, dt: float) -> Iterator[Row]:
    """Relative L2 errors of Heston's density over the test law, and from low variances."""
    sde = q.sde
    x0, params = test_draws(sde, seed=1)
    errors = relative_l2(q, p, dt, x0, params)
    label = f"{sde.label}, gap {dt:g}: "
    note = f"median {np.median(errors):.1e}, largest {np.max(errors):.1e}"
    yield Row(label + "mean relative L2 error over the test law", 0.0633, 0.005, float(np.mean(errors)), note)
    for v0, paper, target in ((1e-2, 0.04, 0.004), (1e-4, 0.06, 0.006)):
        error = relative_l2(q, p, dt, np.array([[v0, 0.0]]), star(sde))[0]
        yield Row(label + f"relative L2 error from v0 = {v0:g}", paper, target, float(error))


def heston(name: str = "heston") -> Iterator[Row]:
    q, p = load(name), density("exact", Heston())
    yield from likelihood_rows(q, p, 0.5, 350, (3e-4, 0.063, 0.013), (2e-5, 0.005, 0.0007))
    yield from l2_rows(q, p, 0.5)
    yield from likelihood_rows(q, p, 1.0, 200, (4.4e-3, 0.257, 0.100), (5e-5, 0.008, 0.002))


def heston_laws(draws: int = 1024) -> Iterator[Row]:
    """The two files for Heston's model: log q over the law of each, from a trading day to a year."""
    exact = density("exact", Heston())
    for name, law in (("heston", "default"), ("heston-wide", "wide"), ("heston-wide", "default")):
        q = load(name)
        for dt, gap in ((1 / 252, "a day"), (1 / 12, "a month"), (0.5, "half a year"), (1.0, "a year")):
            ratio = log_ratios(q, exact, dt, laws.shipped(law, q.sde), draws, seed=1)
            note = f"median {np.median(np.abs(ratio)):.1e}, largest {np.max(np.abs(ratio)):.1e}"
            what = f"{name}, gap {gap}: rms error of log q over the law {law!r}"
            yield Row(what, None, None, float(np.sqrt(np.mean(ratio**2))), note)


def svcev(name: str = "svcev") -> Iterator[Row]:
    yield from likelihood_rows(load(name), density("fourier", SVCEV()), 0.5, 100, (4e-4, 0.084, None), (2e-5, 0.006, 0.0005))


def bdfs(name: str = "bdfs", draws: int = 2048, conditions: int = 16) -> Iterator[Row]:
    """The paper shows a picture; here: log q, log likelihoods, moments and marginals."""
    q, p, dt = load(name), density("exact", BDFS()), 0.5
    label = f"{q.sde.label}, gap {dt:g}: "
    ratio = log_ratios(q, p, dt, laws.shipped("paper", q.sde), draws, seed=1)
    note = f"median {np.median(np.abs(ratio)):.1e}, largest {np.max(np.abs(ratio)):.1e}"
    yield Row(label + "rms error of log q over the training law", None, 0.003, float(np.sqrt(np.mean(ratio**2))), note)
    series = [trajectory(q.sde, dt, 350, seed) for seed in SEEDS]
    errors = [relative_errors(q, p, one, star(q.sde))[0] for one in series]
    yield Row(
        label + "log likelihood at mu*, 350 observations", None, None, float(np.median(errors)), f"largest {max(errors):.1e}"
    )
    spreads = [spread(q, p, one, seed) for seed, one in zip(SEEDS, series, strict=True)]
    note = f"largest of {len(SEEDS)} trajectories {max(spreads):.1e}"
    yield Row(label + "spread over posterior draws, nats", None, 0.02, float(np.median(spreads)), note)
    yield from moment_rows(q, p, dt, label, conditions)


def moment_rows(q: Surrogate, p: Density, dt: float, label: str, conditions: int) -> Iterator[Row]:
    """Means and standard deviations against the closed forms, and the marginals, in draws of the flow.

    The marginals of p are those of the same draws with weights p/q, so that the Kolmogorov distance has hardly any noise.
    """
    x0, params = laws.shipped("paper", q.sde).sample(np.random.default_rng(7), conditions)
    mean, covariance = jax.jit(jax.vmap(lambda a, b: moments(q.sde, 0.0, dt, a, b)))(x0, params)
    sd = np.sqrt(np.diagonal(np.asarray(covariance), axis1=1, axis2=2))
    x = flow_draws(q, dt, x0, params, 4096, seed=3)
    log_w = np.asarray(
        p.log_prob_batch(x, x0[:, None], dt, params[:, None]) - q.log_prob_batch(x, x0[:, None], dt, params[:, None])
    )
    w = np.exp(log_w)
    w /= w.mean(axis=1, keepdims=True)
    off_mean = np.mean((1 - w)[..., None] * x, axis=1) / sd
    off_sd = np.mean((1 - w)[..., None] * (x - np.asarray(mean)[:, None]) ** 2, axis=1) / sd**2 / 2
    yield Row(
        label + "means, in standard deviations",
        None,
        None,
        float(np.max(np.abs(off_mean))),
        f"largest of {conditions} conditions",
    )
    yield Row(
        label + "standard deviations, relative",
        None,
        None,
        float(np.max(np.abs(off_sd))),
        f"largest of {conditions} conditions",
    )
    order = np.argsort(x, axis=1)
    steps = np.take_along_axis((1 - w)[..., None] / w.shape[1], order, axis=1)
    distance = np.max(np.abs(np.cumsum(steps, axis=1)))
    yield Row(
        label + "marginals, Kolmogorov distance",
        None,
        None,
        float(distance),
        f"largest of {conditions} conditions and 3 states",
    )


def table(rows: Iterable[Row]) -> Table:
    """The rows as they come, beside the paper's figures and the targets."""
    shown = Table("error", "paper", "target", "measured", "", "note", title="Accuracy", title_justify="left")
    for row in rows:
        mark = {None: "", True: "reached", False: "[bold]missed[/bold]"}[row.reached]
        shown.add_row(row.what, _number(row.paper), _number(row.target), _number(row.measured), mark, row.note)
    return shown


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


SHIPPED: Mapping[str, Callable[..., Iterator[Row]]] = {
    "heston": heston,
    "heston-wide": heston_laws,
    "svcev": svcev,
    "bdfs": bdfs,
}


def measure() -> dict[str, Any]:
    """Every row, and what each density cost."""
    answer: dict[str, Any] = {}
    for name, rows in SHIPPED.items():
        found, record = list(rows()), load(name).trained.record
        Console(stderr=True, width=180).print(table(found))
        answer[name] = {
            "made by": record.command,
            "training, minutes": round(record.seconds / 60, 1),
            "rows": [{**dataclasses.asdict(row), "reached": row.reached} for row in found],
        }
    return answer


if __name__ == "__main__":
    run("accuracy", __doc__, measure)
