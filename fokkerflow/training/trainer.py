"""The two trainers behind one interface, so that progress, checkpoints and resuming are written once, in `fit`."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple, final

from fokkerflow.flow import Flow, weights
from fokkerflow.training import gauss_newton
from fokkerflow.training.collocation import Conditions
from fokkerflow.training.gauss_newton import GaussNewton


class Report(NamedTuple):
    """What a step did: where the training is now, in words and as a share of the whole, and the median residual."""

    where: str
    share: float
    residual: float


class Trainer(abc.ABC):
    """A trainer with its flow and settings. A state is a tree of arrays and numbers, which is all that a checkpoint stores."""

    flow: Flow
    points: int

    @abc.abstractmethod
    def start(self) -> Any:
        """The state before the first step."""

    @abc.abstractmethod
    def advance(self, state: Any, conditions: Conditions) -> tuple[Any, Report]:
        """One step, at fresh `points` conditions."""

    @abc.abstractmethod
    def finished(self, state: Any) -> bool:
        """Whether there is nothing left to do."""

    @abc.abstractmethod
    def result(self, state: Any) -> tuple[Flow, Any]:
        """The flow with the weights of a state, and the path of the weights in time, if they move."""


@final
class GaussNewtonTrainer(Trainer):
    """`fokkerflow.training.gauss_newton`."""

    def __init__(self, flow: Flow, settings: GaussNewton) -> None:
        self.flow, self.settings, self.points = flow, settings, settings.points

    def start(self) -> gauss_newton.State:
        return gauss_newton.start(self.flow, self.settings)

    def advance(self, state: gauss_newton.State, conditions: Conditions) -> tuple[gauss_newton.State, Report]:
        state, info = gauss_newton.iterate(self.flow, self.settings, state, conditions)
        done, total = state.iteration, self.settings.iterations
        return state, Report(f"iteration {done} of {total}", done / total, info.median)

    def finished(self, state: gauss_newton.State) -> bool:
        return state.iteration >= self.settings.iterations

    def result(self, state: gauss_newton.State) -> tuple[Flow, None]:
        _, with_weights = weights(self.flow)
        return with_weights(state.theta), None


def trainer_for(flow: Flow, settings: GaussNewton) -> Trainer:
    """The trainer that settings belong to."""
    return GaussNewtonTrainer(flow, settings)
