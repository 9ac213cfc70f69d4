"""Numbers and verdicts as they are read."""

import numpy as np
import pytest

from fokkerflow.report.smooth import smooth_density
from fokkerflow.report.verdict import Answer, Level, Verdict
from fokkerflow.report.words import counted, duration, listed, percent, to_precision, two_digits


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.10312, 0.00161, "0.1031"),
        (-0.80004, 0.0223, "−0.800"),
        (-0.0004, 0.013, "0.000"),
        (123456.7, 230.0, "123460"),
        (3.14159, 0.0, "3.142"),
        (2.5, float("nan"), "2.5"),
        (1.5e-9, 2.1e-10, "1.50e−09"),
    ],
)
def test_as_many_decimals_as_the_error_has_two_digits(value: float, error: float, text: str) -> None:
    assert to_precision(value, error) == text


def test_lists_counts_times_and_shares() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert counted(1, "series") == "1 series"
    assert counted(1001, "draw") == "1\u202f001 draws"
    assert [duration(s) for s in (0.44, 42.2, 187, 8100, float("inf"))] == ["0.4 s", "42 s", "3:07 min", "2:15 h", "?"]
    assert percent(0.9) == "90\u00a0%"
    assert [two_digits(v) for v in (0.3, 0.0159, 12.0, 1234.0)] == ["0.30", "0.016", "12", "1.2e+03"]


def _answer(level: Level) -> Answer:
    return Answer("?", f"{level.value} thing", level, "")


@pytest.mark.parametrize(
    ("levels", "level", "headline"),
    [
        ([Level.GOOD, Level.OPEN], Level.GOOD, "Nothing that was checked speaks against these results."),
        ([Level.GOOD, Level.CARE], Level.CARE, "Use these results with care: look at the care thing."),
        (
            [Level.CARE, Level.BAD, Level.BAD],
            Level.BAD,
            "Do not rely on these results: the bad thing and the bad thing failed.",
        ),
        ([Level.OPEN], Level.OPEN, "Nothing was checked."),
    ],
)
def test_the_gravest_answer_decides(levels: list[Level], level: Level, headline: str) -> None:
    verdict = Verdict(tuple(map(_answer, levels)))
    assert verdict.level is level
    assert verdict.headline == headline


def test_a_smooth_density_integrates_to_one_and_keeps_sudden_ends(rng: np.random.Generator) -> None:
    at = np.linspace(-5, 5, 2001)
    normal = smooth_density(rng.standard_normal(4000), at)
    assert np.trapezoid(normal, at) == pytest.approx(1, abs=1e-3)
    assert np.abs(normal - np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)).max() < 0.03
    uniform = smooth_density(rng.uniform(0, 1, 4000), at)
    assert np.trapezoid(uniform, at) == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose(uniform[(at > 0.01) & (at < 0.99)], 1, atol=0.2)  # a plain kernel gives one half at the ends
    assert np.all(uniform[(at < -0.01) | (at > 1.01)] == 0)
    assert np.all(smooth_density(np.ones(10), at) == 0)
