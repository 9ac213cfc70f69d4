"""A page: sections of blocks, rendered into one HTML file that needs nothing else."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from markupsafe import Markup

from fokkerflow._version import __version__
from fokkerflow.report.verdict import Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

Kind = Literal["text", "answer", "table", "figures", "wide figures", "pairs", "heading", "facts", "code"]


class Block(NamedTuple):
    """One piece of a section; its kind says what the content is and how the template shows it."""

    kind: Kind
    content: Any


class Table(NamedTuple):
    """A table of text; the first cell of a row is its heading."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """A part of the page. `subjects` are those of the answers in the verdict that link here."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    title: str
    lead: str
    verdict: Verdict
    sections: tuple[Section, ...]


def render(page: Page) -> str:
    """The page as HTML."""
    anchors = {subject: section.anchor for section in page.sections for subject in section.subjects}
    css = Markup((_templates() / "report.css").read_text(encoding="utf-8"))
    template = _environment().get_template("report.html.j2")
    return template.render(page=page, anchors=anchors, css=css, version=__version__)


def _templates() -> Any:
    return resources.files("fokkerflow") / "report" / "templates"


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(lambda name: (_templates() / name).read_text(encoding="utf-8")),
        autoescape=True,  # names, paths and commands are the user's
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
