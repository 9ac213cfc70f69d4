"""Figures of data that are unlike the usual: many series, dates, many draws, one chain, divergences."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from fokkerflow.densities import density
from fokkerflow.inference.slices import slices
from fokkerflow.report.chain_figures import rank_figure, trace_figure
from fokkerflow.report.data_figures import Bands, residual_figure, state_figure
from fokkerflow.report.embed import picture
from fokkerflow.report.figures import likelihood_figure
from fokkerflow.report.posterior_figures import interval, marginal_figure, pair_figure
from fokkerflow.sde import OU
from tests.report.posteriors import ou_series


def lines(figure: Figure) -> list[np.ndarray]:
    return [line.get_ydata() for line in figure.axes[0].lines]


def test_dates_are_on_the_axis_if_time_0_is_one() -> None:
    times, values = np.array([0.0, 0.5, 1.0]), np.array([1.0, 2.0, 1.5])
    figure = state_figure([times], [values], origin="2020-01-01")
    assert [str(when.date()) for when in figure.axes[0].lines[0].get_xdata()] == ["2020-01-01", "2020-07-01", "2020-12-31"]
    np.testing.assert_array_equal(state_figure([times], [values], origin="day one").axes[0].lines[0].get_xdata(), times)


def test_bands_lie_around_the_median_and_every_series_is_drawn(rng: np.random.Generator) -> None:
    times, values = np.arange(5.0), rng.normal(size=5)
    bands = Bands((0.9, 0.5), np.stack([values - 2, values - 1]), np.stack([values + 2, values + 1]), values)
    figure = state_figure([times], [values], bands)
    assert len(figure.axes[0].collections) == 2
    assert len(lines(state_figure([times, times], [values, values + 1]))) == 2


def test_a_trace_of_many_draws_is_thinned_and_divergences_are_marked(rng: np.random.Generator) -> None:
    chains = rng.normal(size=(2, 20_000))
    diverging = np.zeros(chains.shape, bool)
    diverging[1, 17] = True
    *traces, marks = lines(trace_figure(chains, diverging))
    assert all(len(trace) <= 3000 for trace in traces)
    assert len(marks) == 1


@pytest.mark.parametrize("count", [1, 4])
def test_ranks_of_chains_that_agree_lie_in_the_band(count: int, rng: np.random.Generator) -> None:
    chains = rng.normal(size=(count, 2000))
    axes = rank_figure(chains, ess=2000.0 * count).axes[0]
    band = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    shares = np.concatenate([stairs.get_data().values for stairs in axes.patches[1:]])
    assert np.mean((shares >= band.y0 - 1e-9) & (shares <= band.y1 + 1e-9)) > 0.95
    assert np.mean(shares) == pytest.approx(1)


def test_marginals_and_pairs_show_the_truth(rng: np.random.Generator) -> None:
    draws = rng.normal(size=1000)
    assert interval(draws) == pytest.approx((-1.645, 1.645), abs=0.15)
    assert len(lines(marginal_figure(draws, rng.uniform(-5, 5, 1000), truth=0.3))) == 3
    figure = pair_figure({"a": draws, "b": draws + rng.normal(size=1000)}, {"a": 0.0, "b": 0.0})
    assert "+0.7" in "".join(text.get_text() for axes in figure.axes for text in axes.texts)


def test_residuals_far_out_stay_in_the_picture() -> None:
    low, high = residual_figure(np.arange(3.0), np.array([0.0, -9.0, 1.0])).axes[0].get_ylim()
    assert low < -9
    assert high > 9


def test_a_picture_is_an_svg_with_its_proportions() -> None:
    found = picture(marginal_figure(np.random.default_rng(0).normal(size=100)), "a", "what it shows")
    assert found.uri.startswith("data:image/svg+xml;base64,")
    assert (found.width, found.height) == (360, 230)


def test_likelihood_slices_are_drawn_for_each_parameter() -> None:
    curves = slices(density("exact", OU()), ou_series(), OU.typical, points=11)
    figure = likelihood_figure(ou_series(), curves, OU.typical, "title")
    titles = [axes.get_title(loc="left") for axes in figure.get_axes()]
    assert titles == ["x", "kappa", "mean", "sigma"]
