"""The section about the model: PIT residuals, and what it predicts one step ahead."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from fokkerflow.inference.pit import PIT
from fokkerflow.inference.predictive import Predictive
from fokkerflow.report.checks import coverage
from fokkerflow.report.contents import Contents
from fokkerflow.report.data_figures import Bands, pit_figure, residual_figure, state_figure
from fokkerflow.report.embed import Picture, picture
from fokkerflow.report.page import Block, Section, Table
from fokkerflow.report.verdict import Answer
from fokkerflow.report.words import listed, percent

_LEVELS = (0.9, 0.5)


def model_section(contents: Contents, answer: Answer) -> Section:
    """Whether data like these can come from the model at all."""
    blocks = [Block("answer", answer)]
    if contents.checks.ahead is not None:
        blocks += _predictions(contents, contents.checks.ahead)
    if contents.checks.pit is not None:
        blocks += _residuals(contents, contents.checks.pit)
    return Section("model", answer.question, tuple(blocks), (answer.subject,))


def _predictions(contents: Contents, ahead: Predictive) -> list[Block]:
    reached = [f"the {percent(level)} band {_shares(ahead, found)}" for level, found in coverage(ahead, _LEVELS).items()]
    return [
        Block("heading", "One step ahead"),
        Block(
            "text",
            "The data in black, and in blue what the fitted model expected of each observation, given the one before. "
            f"Of the data, {listed(reached)}.",
        ),
        Block("wide figures", [_bands(contents, ahead, i) for i in range(contents.sde.dimension)]),
    ]


def _shares(ahead: Predictive, found: np.ndarray) -> str:
    return "holds " + listed([f"{percent(share)} of {name}" for share, name in zip(found, ahead.states, strict=True)])


def _bands(contents: Contents, ahead: Predictive, i: int) -> Picture:
    """Of the first series, if there are several."""
    first, name = contents.series[0], ahead.states[i]
    rows = slice(0, len(first) - 1)
    ends = [ahead.bands([level])[level] for level in _LEVELS]
    low, high = (np.stack([end[k][rows, i] for end in ends]) for k in (0, 1))
    bands = Bands(_LEVELS, low, high, ahead.median[rows, i])
    figure = state_figure([first.times[1:]], [first.states[1:, i]], bands, first.origin)
    note = "" if len(contents.series) == 1 else "the first series"
    return picture(figure, name, f"{name} against time, with the bands in which the model expected it.", note)


def _residuals(contents: Contents, found: PIT) -> list[Block]:
    origin = contents.series[0].origin if len(contents.series) == 1 else None
    histograms = [
        picture(pit_figure(u), name, f"Histogram of the PIT values of {name}.", "should be level")
        for name, u in zip(found.states, found.values.T, strict=True)
    ]
    scatters = [
        picture(
            residual_figure(found.times, norm.ppf(u), origin),
            name,
            f"Normal residuals of {name} against time.",
            "residuals, in standard deviations",
        )
        for name, u in zip(found.states, found.values.T, strict=True)
    ]
    rows = [[test.question, f"{test.p_value:.2g}"] for test in found.tests]
    return [
        Block("heading", "Residuals"),
        Block(
            "text",
            "Each observation as a share: how much of its prediction lies below it. If the model is right, these shares are "
            "uniform, unrelated to each other and to where the process was. The grey bands hold 99 % of what chance does.",
        ),
        Block("figures", histograms),
        Block("figures", scatters),
        Block("table", Table(f"Tests; together, p = {found.p_value:.2g}", ["question", "p-value"], rows)),
    ]
