"""Numbers and lists as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def to_precision(value: float, error: float) -> str:
    """`value` with as many decimals as `error` has two significant digits: ``to_precision(0.10312, 0.00161)`` is 0.1031."""
    if not (math.isfinite(value) and math.isfinite(error)) or error <= 0:
        return with_minus(f"{value:.4g}")
    decimals = 1 - math.floor(math.log10(error))
    if not -3 <= decimals <= 7:
        return with_minus(f"{value:.{max(1, decimals + math.floor(math.log10(abs(value) or error)))}e}")
    return with_minus(f"{round(value, decimals) + 0.0:.{max(0, decimals)}f}")  # + 0.0: zero has no sign


def two_digits(value: float) -> str:
    """Two significant digits, zeros included: ``"0.30"``."""
    return f"{value:#.2g}".removesuffix(".") if 1e-4 <= abs(value) < 100 else f"{value:.2g}"


def percent(share: float, decimals: int = 0) -> str:
    """``"90 %"``, with a space that does not break."""
    return f"{100 * share:.{decimals}f}\u00a0%"


def interval_text(interval: object) -> str:
    """A domain, with the sign for infinity."""
    return with_minus(str(interval).replace("inf", "∞"))


def with_minus(number: str) -> str:
    """A number with a minus sign in place of the hyphen."""
    return number.replace("-", "\u2212")


def listed(words: Sequence[str]) -> str:
    """``"a, b and c"``."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def counted(count: int, noun: str) -> str:
    """``"1 series"``, ``"1 001 draws"``; the noun is given in the singular, ``"series"`` stays what it is."""
    return f"{grouped(count)} {noun}" + ("" if count == 1 or noun.endswith("s") else "s")


def grouped(count: int) -> str:
    """Thousands apart, by a narrow space."""
    return f"{count:,}".replace(",", "\u202f")


def duration(seconds: float) -> str:
    """``"0.4 s"``, ``"42 s"``, ``"3:07 min"``, ``"2:15 h"``; ``"?"`` if nobody knows."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02d} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02d} h"
