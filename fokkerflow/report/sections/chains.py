"""The section about the sampler: R-hat and effective sizes, traces, ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fokkerflow.report.chain_figures import rank_figure, trace_figure
from fokkerflow.report.contents import Contents
from fokkerflow.report.embed import picture
from fokkerflow.report.page import Block, Section, Table
from fokkerflow.report.verdict import Answer, Level
from fokkerflow.report.words import counted, grouped, percent, two_digits

if TYPE_CHECKING:
    from fokkerflow.inference.diagnostics import Diagnosis


def chains_section(contents: Contents, answer: Answer) -> Section:
    """Whether the draws are draws from the posterior."""
    chains = contents.chains
    count, n = next(iter(chains.values())).shape
    sizes = {row["parameter"]: row["ess_bulk"] for row in contents.summary}
    diverging = _diverging(contents)
    traces = [picture(trace_figure(c, diverging), name, f"Trace of {name}, one line a chain.") for name, c in chains.items()]
    ranks = [
        picture(rank_figure(c, sizes[name]), name, f"Histogram of the ranks of {name} in each chain.")
        for name, c in chains.items()
    ]
    return Section(
        "sampler",
        answer.question,
        (
            Block("answer", answer),
            Block("table", _table(contents)),
            Block("text", _reading(count, n, diverging)),
            Block("heading", "Traces"),
            Block("text", "Each colour is a chain. They should look alike, without drifts or plateaus."),
            Block("figures", traces),
            Block("heading", "Ranks"),
            Block(
                "text", "How the draws of each chain rank among all. Every chain should be level, mostly within the grey band."
            ),
            Block("figures", ranks),
        ),
        (answer.subject,),
    )


def _table(contents: Contents) -> Table:
    rows = [
        [
            row["parameter"],
            f"{row['r_hat']:.4f}",
            _size(row["ess_bulk"]),
            _size(row["ess_tail"]),
            two_digits(row["mcse_mean"]),
            percent(row["mcse_mean"] / row["sd"], 1),
        ]
        for row in contents.summary
    ]
    header = ["", "R-hat", "ESS, bulk", "ESS, tails", "MCSE of the mean", "in sd"]
    return Table("Convergence of each parameter", header, rows)


def _size(value: float) -> str:
    return grouped(round(value)) if math.isfinite(value) else "?"


def _reading(count: int, n: int, diverging: Any) -> str:
    divergent = "" if diverging is None else f", {counted(int(diverging.sum()), 'divergent draw')}"
    made = f"{counted(count, 'chain')} of {counted(n, 'draw')}{divergent}."
    return (
        f"{made} R-hat compares the chains with each other and is 1 when "
        "they agree; ESS is how many independent draws would be as good; MCSE is the error of the posterior mean "
        "that comes from having finitely many draws."
    )


def _diverging(contents: Contents) -> Any:
    stats = getattr(contents.idata, "sample_stats", None)
    return None if stats is None or "diverging" not in stats else np.asarray(stats["diverging"].values, bool)


def sampler_answer(contents: Contents) -> Answer:
    """What the diagnosis of the chains means for the results."""
    found = contents.diagnosis
    if found.ok:
        return Answer(_QUESTION, "sampler", Level.GOOD, found.verdict)
    level = Level.CARE if _slight(found) else Level.BAD
    return Answer(_QUESTION, "sampler", level, " ".join(found.problems), found.advice)


_QUESTION = "Did the sampler converge?"
_FEW_DIVERGENCES = 0.01
"""A smaller share of divergent draws than this is worth a look; with chains that agree it hardly moves a mean."""


def _slight(found: Diagnosis) -> bool:
    """Whether divergences are all that is wrong, and they are few."""
    share = (found.divergences or 0) / (found.draws * found.chains)
    return len(found.problems) == 1 and 0 < share < _FEW_DIVERGENCES
