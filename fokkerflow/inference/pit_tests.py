"""The questions that are put to PIT residuals, and what it means in words if the answer is no."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from fokkerflow.inference.steps import Steps
from fokkerflow.inference.uniformity import dependence_test, distance, extreme_test, serial_test, smooth_test, state_test

FEWEST = 20
"""The tests are asymptotic: with fewer transitions their p-values mean nothing."""

_SHAPE = {
    (1, True): "lies above what the model predicts",
    (1, False): "lies below what the model predicts",
    (2, True): "varies more than the model predicts",
    (2, False): "varies less than the model predicts",
    (3, True): "is skewed differently, with more mass just below the middle and at the top",
    (3, False): "is skewed differently, with more mass just above the middle and at the bottom",
    (4, True): "has heavier tails and a sharper centre than the model predicts",
    (4, False): "has lighter tails and a flatter centre than the model predicts",
}


@dataclass(frozen=True)
class PITTest:
    """One test.

    **Attributes:**

    - `coordinate`: the state that it is about, or two, joined by a comma.
    - `kind`: ``"shape"``, ``"outlier"``, ``"memory"``, ``"spread"`` (memory of the size of moves), ``"drift"``,
      ``"volatility"`` (dependence of moves and of their size on the state that they start from) or ``"dependence"``.
    - `question`: what is asked; `p_value`: the answer; `finding`: what is wrong if it is small.
    """

    coordinate: str
    kind: str
    question: str
    p_value: float
    finding: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_tests(
    u: Float[np.ndarray, "n d"], data: Steps, states: tuple[str, ...]
) -> tuple[tuple[PITTest, ...], tuple[float, ...]]:
    """All tests, and the distance from uniformity of each coordinate; no tests of fewer than `FEWEST` transitions."""
    distances = tuple(distance(column) for column in u.T)
    if len(u) < FEWEST:
        return (), distances
    tests = [test for j, name in enumerate(states) for test in _of_coordinate(u[:, j], data, name)]
    for (i, start), (j, name) in itertools.product(enumerate(states), repeat=2):
        tests += _of_start(u[:, j], data.x0[:, i], name, start)
    for (i, a), (j, b) in itertools.combinations(enumerate(states), 2):
        p_value, r = dependence_test(u[:, i], u[:, j])
        finding = f"The moves of {a} and {b} are correlated otherwise than the model predicts (by {r:+.2f})."
        tests.append(PITTest(f"{a},{b}", "dependence", f"{a} and {b} move together as predicted", p_value, finding))
    return tuple(tests), distances


def _of_coordinate(u: np.ndarray, data: Steps, name: str) -> list[PITTest]:
    series = data.series
    smooth = smooth_test(u)
    extreme, row = extreme_test(u)
    levels, first_level = serial_test(u, series)
    spreads, first_spread = serial_test((2 * u - 1) ** 2, series)
    where = f"at time {data.t0[row] + data.dt[row]:.6g}" + (f" of series {series[row]}" if series.max() else "")
    return [
        PITTest(name, "shape", f"{name} has the predicted distribution", smooth.p_value, f"{name} {_SHAPE[smooth.reason]}."),
        PITTest(
            name,
            "outlier",
            f"{name} has no move that is too large",
            extreme,
            f"{name} moves further than the model can {where}.",
        ),
        PITTest(
            name,
            "memory",
            f"the moves of {name} do not follow from earlier ones",
            levels,
            f"The moves of {name} follow from earlier ones ({first_level:+.2f} from one to the next): "
            "something that lasts is missing.",
        ),
        PITTest(
            name,
            "spread",
            f"the sizes of the moves of {name} do not follow from earlier ones",
            spreads,
            f"Large moves of {name} come in clusters ({first_spread:+.2f} from one to the next): "
            "volatility changes in a way that the model does not know.",
        ),
    ]


def _of_start(u: np.ndarray, x0: np.ndarray, name: str, start: str) -> list[PITTest]:
    drift, by = state_test(u, x0, order=1, degrees=(2, 3) if name == start else (1, 2))
    volatility, more = state_test(u, x0, order=2, degrees=(1, 2))
    return [
        PITTest(
            name,
            "drift",
            f"the moves of {name} depend on {start} as predicted",
            drift,
            f"The moves of {name} depend on {start} otherwise than the model predicts ({by:+.2f}): look at the drift.",
        ),
        PITTest(
            name,
            "volatility",
            f"the sizes of the moves of {name} depend on {start} as predicted",
            volatility,
            f"The sizes of the moves of {name} depend on {start} otherwise than the model predicts ({more:+.2f}): "
            "look at the volatility.",
        ),
    ]
