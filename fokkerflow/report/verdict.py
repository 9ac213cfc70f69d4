"""Whether to trust a posterior: one question for each way in which it may be wrong, its answer, and what follows from all."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from fokkerflow.report.words import listed


class Level(enum.Enum):
    """How an answer bears on the results; the order is that of gravity."""

    GOOD = "good"
    OPEN = "open"
    CARE = "care"
    BAD = "bad"


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    **Arguments:**

    - `question`: in full, as a heading.
    - `subject`: the same in two or three words.
    - `level`: what it means for the results.
    - `answer`: one sentence.
    - `advice`: what to do about it, a sentence each.
    """

    question: str
    subject: str
    level: Level
    answer: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """All answers, and the sentence that stands at the top of a report."""

    answers: tuple[Answer, ...]

    @property
    def level(self) -> Level:
        """That of the gravest answer; a question left open takes nothing away."""
        order = list(Level)
        worst = max((a.level for a in self.answers), key=order.index, default=Level.OPEN)
        return Level.GOOD if worst is Level.OPEN and any(a.level is Level.GOOD for a in self.answers) else worst

    @property
    def headline(self) -> str:
        if self.level is Level.BAD:
            return f"Do not rely on these results: {self._failing(Level.BAD)} failed."
        if self.level is Level.CARE:
            return f"Use these results with care: look at {self._failing(Level.CARE)}."
        if self.level is Level.GOOD:
            return "Nothing that was checked speaks against these results."
        return "Nothing was checked."

    def _failing(self, level: Level) -> str:
        return listed([f"the {answer.subject}" for answer in self.answers if answer.level is level])


def verdict(answers: Sequence[Answer | None]) -> Verdict:
    """The verdict over the answers that there are."""
    return Verdict(tuple(answer for answer in answers if answer is not None))
