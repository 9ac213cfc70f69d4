"""Accuracy against cost: errors and nodes against closed forms, failures counted, and the figure."""

import dataclasses
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import beta

from fokkerflow.densities import Density, density
from fokkerflow.inference import log_likelihood
from fokkerflow.report.accuracy import Accuracy, Errors, Progress, measure
from fokkerflow.report.accuracy_figure import accuracy_figure
from fokkerflow.report.accuracy_nodes import l2_nodes, relative_l2
from fokkerflow.report.accuracy_timing import Evaluator
from fokkerflow.report.accuracy_trials import Trials, trajectory, trials
from fokkerflow.sde import CIR, OU, SDE, from_functions
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.training import laws

DT, SHAPE = 0.25, {"n": 21, "trajectories": 2, "draws": 3}


def linear(d: int) -> SDE:
    """dX = -k X dt + noise that is correlated."""
    root = jnp.eye(d) + 0.3 * jnp.tri(d, k=-1)
    states = {f"x{i}": "real" for i in range(d)}
    return from_functions(lambda x, p: -p.k * x, lambda x, p: p.k * root @ root.T, states=states, parameters={"k": 1.5})


@pytest.mark.parametrize(("d", "tolerance"), [(1, 1e-10), (2, 1e-10), (3, 0.01)])
def test_the_l2_error_of_a_shifted_gaussian_is_the_closed_form(d: int, tolerance: float) -> None:
    """||q - p||^2 / ||p||^2 = 2 - 2 exp(-delta' C^-1 delta / 4) if q is p moved by delta."""
    sde, x0, k, dt = linear(d), np.linspace(0.5, 1.0, d)[None], 1.5, 0.4
    at = l2_nodes(sde, dt, x0, np.array([[k]]))
    root = np.eye(d) + 0.3 * np.tri(d, k=-1)
    C, mean = root @ root.T * (1 - np.exp(-2 * k * dt)) / 2, x0 * np.exp(-k * dt)
    delta = 0.3 * np.linalg.cholesky(C) @ np.ones(d)
    log_p, log_q = (_log_normal(at.x, mean + shift, C) for shift in (0.0, delta))
    expected = np.sqrt(2 - 2 * np.exp(-0.09 * d / 4))
    assert relative_l2(log_q, log_p, at.log_weight) == pytest.approx(expected, rel=tolerance)
    assert np.sum(np.exp(log_p + at.log_weight)) == pytest.approx(1, rel=tolerance)


def _log_normal(x: np.ndarray, mean: np.ndarray, C: np.ndarray) -> np.ndarray:
    z = (x - mean) @ np.linalg.inv(np.linalg.cholesky(C)).T
    return -np.sum(z**2, -1) / 2 - np.log(np.linalg.det(2 * np.pi * C)) / 2


def test_nodes_integrate_densities_on_half_lines_and_intervals() -> None:
    cir, x0 = CIR(), np.array([[0.01], [0.1], [0.4]])
    p = np.repeat([list(CIR.typical.values())], 3, 0)
    at = l2_nodes(cir, DT, x0, p)
    mass = np.sum(np.exp(density("exact", cir).log_prob_batch(at.x, x0[:, None], DT, p[:, None]) + at.log_weight), 1)
    np.testing.assert_allclose(mass, 1, atol=1e-6)
    share = from_functions(
        lambda x, p: p.k * (0.5 - x), lambda x, p: p.s**2 * x * (1 - x), states={"x": (0, 1)}, parameters={"k": 1.0, "s": 0.8}
    )
    at = l2_nodes(share, DT, np.array([[0.4]]), np.array([[1.0, 0.8]]))
    assert np.sum(beta(3, 4).pdf(at.x[0, :, 0]) * np.exp(at.log_weight[0])) == pytest.approx(1, abs=1e-6)


def test_an_l2_error_is_infinite_or_unknown_where_a_density_is() -> None:
    flat, weight = np.zeros((1, 3)), np.zeros((1, 3))
    broken = np.array([[0.0, np.nan, 0.0]])
    assert relative_l2(broken, flat, weight) == np.inf
    assert relative_l2(np.array([[0.0, 800.0, 0.0]]), flat, weight) == np.inf
    assert np.isnan(relative_l2(flat, broken, weight))
    assert relative_l2(np.array([[-np.inf] * 3]), flat, weight) == pytest.approx(1)


@pytest.fixture(scope="module")
def ou() -> Trials:
    return trials(OU(), DT, laws.shipped("default", OU()), **SHAPE)


class Broken(Density):
    """The exact density, but not everywhere."""

    sde: SDE

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        log = density("exact", self.sde).log_density(x1, x0, dt, p, t0)
        return jnp.where(x1[0] > 0.6, -jnp.inf, jnp.where(x1[0] < 0.3, jnp.nan, log))


@pytest.fixture(scope="module")
def rows(ou: Trials) -> dict[str, Accuracy]:
    names = ("euler", "moment-closure", "fourier")
    makes = {name: partial(density, name, ou.sde) for name in names} | {"broken": partial(Broken, ou.sde)}
    seen: list[Progress] = []
    found = measure(("exact", partial(density, "exact", ou.sde)), makes, [ou], progress=seen.append)
    assert [p.where.split(",")[0] for p in seen] == ["exact", *makes, "done"]
    assert seen[0].seconds_left == np.inf
    assert seen[1].seconds_left < np.inf
    assert (seen[0].share, seen[-1].share, seen[-1].seconds_left) == (0, 1, 0)
    return {row.name: row for row in found}


def test_errors_at_mu_star_are_those_of_the_log_likelihoods(rows: dict[str, Accuracy]) -> None:
    sde = OU()
    both = [
        [float(log_likelihood(density(name, sde), trajectory(sde, DT, SHAPE["n"], seed), sde.typical)) for seed in (1, 2)]
        for name in ("exact", "euler")
    ]
    exact, found = np.array(both)
    expected = np.abs(found - exact) / np.abs(exact)
    errors = rows["euler"].at_star
    assert errors is not None
    assert errors.median == pytest.approx(np.median(expected))
    assert errors.largest == pytest.approx(np.max(expected))
    assert (errors.count, errors.failed) == (2, 0)


def test_the_reference_has_costs_and_no_errors_and_an_exact_method_has_no_errors_to_speak_of(
    rows: dict[str, Accuracy],
) -> None:
    exact, same, euler = rows["exact"], rows["moment-closure"], rows["euler"]
    assert exact.is_reference
    assert exact.at_star is exact.over_law is exact.l2 is None
    for row in (exact, same, euler):
        assert row.microseconds > 0
        assert row.setup_seconds > 0
        assert (row.evaluations, row.nan, row.not_positive) == (20 * 5, 0, 0)
    for kind in ("at_star", "over_law", "l2"):
        assert getattr(same, kind).largest < 1e-8
        assert getattr(euler, kind).median > 1e-3
        assert getattr(euler, kind).count == (2 if kind == "at_star" else 3)


def test_a_method_that_does_not_apply_says_why(rows: dict[str, Accuracy]) -> None:
    row = rows["fourier"]
    assert row.reason.startswith("Method 'fourier' is not available for OU; it exists for SVCEV.")
    assert row.at_star is row.over_law is row.l2 is None


def test_failures_are_counted_and_never_averaged_away(ou: Trials, rows: dict[str, Accuracy]) -> None:
    x1 = np.concatenate([ou.star.x1, ou.law.x1])
    row = rows["broken"]
    assert (row.nan, row.not_positive) == (np.sum(x1 < 0.3), np.sum(x1 > 0.6))
    assert 0 < row.nan < row.evaluations
    assert row.at_star is not None
    assert row.at_star.median == np.inf
    assert row.at_star.failed == row.at_star.count == 2
    assert Errors.of(np.array([0.1, np.inf, 0.3, np.nan])) == Errors(0.3, np.inf, 0.2, 3, 1)
    assert Errors.of(np.array([np.nan])) is None


def test_a_slow_density_sees_fewer_draws(ou: Trials) -> None:
    exact = partial(density, "exact", ou.sde)
    row = measure(("exact", exact), {"same": exact}, [ou], budget=0.0)[1]
    assert row.over_law is not None
    assert row.l2 is not None
    assert row.at_star is not None
    assert (row.at_star.count, row.over_law.count, row.l2.count) == (2, 1, 1)
    assert (row.draws, row.densities) == (1, 1)


def test_a_reference_without_an_answer_is_refused(ou: Trials) -> None:
    with pytest.raises(ValueError, match="'broken' has no finite log likelihood at mu"):
        measure(("broken", partial(Broken, ou.sde)), {}, [ou])


def test_jobs_in_several_calls_are_the_batch(ou: Trials) -> None:
    exact = density("exact", ou.sde)
    evaluator = Evaluator(exact, DT, ou.size)
    many = type(ou.nodes)(*(np.concatenate([a] * 8) for a in ou.nodes))
    assert len(many.p) * ou.size > 8192
    expected = np.asarray(exact.log_prob_batch(many.x1, many.x0, DT, many.p[:, None]))
    np.testing.assert_allclose(evaluator(many), expected, rtol=1e-12)
    assert 0 < evaluator.time(ou.star) < 1e5
    assert evaluator(ou.star.part(0, 0)).shape == (0, ou.size)


def test_without_a_law_the_l2_error_starts_on_the_trajectories() -> None:
    found = trials(OU(), DT, None, **SHAPE)
    assert len(found.law.p) == 0
    states = trajectory(OU(), DT, SHAPE["n"], 1).states[:, 0]
    assert found.nodes.x0[0, 0, 0] in states
    np.testing.assert_array_equal(found.nodes.p, np.broadcast_to(list(OU.typical.values()), found.nodes.p.shape))
    with pytest.raises(ValueError, match="Got n = 1, expected at least 2"):
        trials(OU(), DT, None, **{**SHAPE, "n": 1})


def test_the_figure_names_every_density_and_marks_failures(rows: dict[str, Accuracy]) -> None:
    figure = accuracy_figure(list(rows.values()), "title")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "log likelihood at μ*", "log likelihood over the test law", "density, L2",
    ]  # fmt: skip
    texts = {text.get_text().strip() for text in figure.axes[0].texts}
    assert texts == {"exact", "euler", "moment-closure", "broken"}
    markers = [line.get_marker() for line in figure.axes[0].lines]
    assert markers.count("^") == 1
    low, high = figure.axes[0].get_ylim()
    assert all(low <= y <= high for line in figure.axes[0].lines[1:] for y in line.get_ydata())
    two = [dataclasses.replace(row, dt=dt) for dt in (0.5, 1.0) for row in rows.values()]
    assert len(accuracy_figure(two, "title").axes) == 6
