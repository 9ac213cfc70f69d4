"""The section about the parameters: estimates, marginals with the prior, pairs."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from fokkerflow.report.contents import Contents
from fokkerflow.report.embed import Picture, picture
from fokkerflow.report.page import Block, Section, Table
from fokkerflow.report.posterior_figures import LEVEL, interval, marginal_figure, pair_figure
from fokkerflow.report.style import BLUE, MUTED, ORANGE
from fokkerflow.report.words import percent, to_precision, two_digits, with_minus

_MOST_PAIRS = 10
"""Parameters in a pair plot; with more of them nobody sees anything."""


def posterior_section(contents: Contents) -> Section:
    """What the data say about each parameter."""
    chains = contents.chains
    draws = {name: values.ravel() for name, values in list(chains.items())[:_MOST_PAIRS]}
    blocks = [
        Block("table", estimates(contents)),
        Block("text", f"Prior: {contents.idata.posterior.attrs.get('prior', 'not recorded')}"),
        Block("text", _legend(contents)),
        Block("figures", [_marginal(contents, name) for name in chains]),
    ]
    if len(draws) > 1:
        figure = pair_figure(draws, contents.truth)
        description = "Clouds of posterior draws for every pair of parameters, with their correlations."
        blocks += [
            Block("heading", "Pairs"),
            Block("text", "Draws of two parameters at a time below the diagonal, their correlations above it."),
            Block("pairs", picture(figure, "", description)),
        ]
    return Section("posterior", "The parameters", tuple(blocks))


def estimates(contents: Contents) -> Table:
    """Mean, spread and interval of each parameter; the truth where it is known."""
    header = ["", "mean", "sd", percent((1 - LEVEL) / 2), "median", percent((1 + LEVEL) / 2)]
    rows = []
    for name, chains in contents.chains.items():
        draws, sd = chains.ravel(), float(chains.std())
        low, high = interval(draws)
        numbers = [to_precision(float(v), sd) for v in (draws.mean(), low, np.median(draws), high)]
        row = [name, numbers[0], two_digits(sd), *numbers[1:]]
        rows.append(row if not contents.truth else [*row, with_minus(f"{contents.truth[name]:g}")])
    caption = f"Posterior; {percent(LEVEL)} of the probability lies between the {header[3]} and the {header[5]} quantile"
    return Table(caption, header if not contents.truth else [*header, "true value"], rows)


def _marginal(contents: Contents, name: str) -> Picture:
    draws, truth = contents.chains[name].ravel(), contents.truth.get(name)
    figure = marginal_figure(draws, contents.prior.get(name), truth)
    low, high = (to_precision(end, float(draws.std())) for end in interval(draws))
    note = f"{low} to {high}"
    return picture(figure, name, f"Posterior density of {name}, with {percent(LEVEL)} of it from {low} to {high}.", note)


def _legend(contents: Contents) -> Markup:
    parts = [f'<span class="key" style="--tone: {BLUE}"></span>posterior, shaded where {percent(LEVEL)} of it lie']
    if contents.prior:
        parts.append(f'<span class="key dashed" style="--tone: {MUTED}"></span>prior')
    if contents.truth:
        parts.append(f'<span class="key" style="--tone: {ORANGE}"></span>true value')
    return Markup(" ".join(f'<span class="entry">{part}</span>' for part in parts))
