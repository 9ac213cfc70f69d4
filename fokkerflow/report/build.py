"""The report of an inference: all sections, and at the top what was found and whether to trust it."""

from __future__ import annotations

from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.report.checks import guard_answer, pit_answer, reference_answer
from fokkerflow.report.contents import Contents
from fokkerflow.report.page import Page, render
from fokkerflow.report.posterior_figures import interval
from fokkerflow.report.sections.chains import chains_section, sampler_answer
from fokkerflow.report.sections.data import data_section, sentence
from fokkerflow.report.sections.density import density_section
from fokkerflow.report.sections.made import made_section
from fokkerflow.report.sections.model import model_section
from fokkerflow.report.sections.posterior import posterior_section
from fokkerflow.report.verdict import Answer, Verdict
from fokkerflow.report.words import counted, listed, to_precision


def report_verdict(contents: Contents) -> Verdict:
    """The answers to: did the sampler converge, was the density valid, does a reference agree, does the model fit."""
    return Verdict((sampler_answer(contents), *_density_answers(contents), pit_answer(contents.checks.pit)))


def report_html(contents: Contents) -> str:
    """One file of HTML that needs no other."""
    verdict = report_verdict(contents)
    sampler, *density, model = verdict.answers
    sections = (
        posterior_section(contents),
        chains_section(contents, sampler),
        density_section(contents, tuple(density)),
        model_section(contents, model),
        data_section(contents),
        made_section(contents),
    )
    transitions = sum(len(one) - 1 for one in contents.series)
    return render(
        Page(f"{contents.sde.label}: posterior from {counted(transitions, 'transition')}", _lead(contents), verdict, sections)
    )


def _density_answers(contents: Contents) -> list[Answer]:
    guard, density = contents.checks.guard, contents.density
    first = [guard_answer(guard, contents.checks.cut)] if guard is not None and guard.has_law else []
    certificate = density.certificate if isinstance(density, Surrogate) else None
    return [*first, reference_answer(contents.checks.reference, exact=contents.name == "exact", certificate=certificate)]


def _lead(contents: Contents) -> str:
    """Data and estimates in words."""
    found = []
    for name, chains in list(contents.chains.items())[:8]:
        low, high = (to_precision(end, float(chains.std())) for end in interval(chains.ravel()))
        found.append(f"{name} between {low} and {high}")
    return f"{sentence(contents.series)} With 90 % probability each, {listed(found)}."
