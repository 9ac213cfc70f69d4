"""The trainers behind one interface, so that progress, checkpoints and resuming are written once, in `fit`."""

from __future__ import annotations

import abc
import math
import time
from typing import Any, NamedTuple, final

from fokkerflow.flow import Flow, weights
from fokkerflow.training import gauss_newton, maximum_likelihood, neural_galerkin
from fokkerflow.training.collocation import Conditions, Gaps
from fokkerflow.training.galerkin_settings import NeuralGalerkin
from fokkerflow.training.gauss_newton import GaussNewton
from fokkerflow.training.maximum_likelihood import MaximumLikelihood
from fokkerflow.training.neural_galerkin import MarchState
from fokkerflow.training.theta_path import ThetaPath

_FIRST_PART = 1e-5
"""Steps of a march grow at first, and are limited by stability later: about half of the work is in equal distances of
log(tau + this share of the longest gap), and half of tau."""


class Report(NamedTuple):
    """What a step did: where the training is now, in words and as a share of the whole, and the residual.

    The residual is tau (d/dtau log q - (L* q)/q) over the points of the step: its median for Gauss-Newton; for Neural Galerkin
    the root mean square of what the least squares at its beginning left. Maximum likelihood has none, and reports its loss
    (`fokkerflow.training.maximum_likelihood.depths`).
    """

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
        self._prepared = False

    def start(self) -> gauss_newton.State:
        return gauss_newton.start(self.flow, self.settings)

    def advance(self, state: gauss_newton.State, conditions: Conditions) -> tuple[gauss_newton.State, Report]:
        if not self._prepared:
            gauss_newton.prepare(self.flow, self.settings, state, conditions)
            self._prepared = True
        state, info = gauss_newton.iterate(self.flow, self.settings, state, conditions)
        done, total = state.iteration, self.settings.iterations
        return state, Report(f"iteration {done} of {total}", done / total, info.median)

    def finished(self, state: gauss_newton.State) -> bool:
        return state.iteration >= self.settings.iterations

    def result(self, state: gauss_newton.State) -> tuple[Flow, None]:
        _, with_weights = weights(self.flow)
        return with_weights(state.theta), None


@final
class NeuralGalerkinTrainer(Trainer):
    """`fokkerflow.training.neural_galerkin`. A step is an attempted one; it may be refused, and is then tried shorter."""

    def __init__(self, flow: Flow, settings: NeuralGalerkin, gaps: Gaps) -> None:
        self.flow, self.settings, self.gaps, self.points = flow, settings, gaps, settings.points

    def start(self) -> MarchState:
        return neural_galerkin.march_start(self.flow, self.settings, self.gaps)

    def advance(self, state: MarchState, conditions: Conditions) -> tuple[MarchState, Report]:
        longest = self.gaps.longest
        state, info = neural_galerkin.advance(self.flow, self.settings, state, conditions, longest)
        done = state.tau / longest
        share = 0.5 * (math.log1p(done / _FIRST_PART) / math.log1p(1 / _FIRST_PART) + done)
        where = f"tau {state.tau:.2e} of {longest:g}, step {len(state.taus) - 1}"
        return state, Report(where, share, (info.tau + info.step) * info.residual)

    def finished(self, state: MarchState) -> bool:
        return neural_galerkin.finished(state, self.gaps.longest)

    def result(self, state: MarchState) -> tuple[Flow, ThetaPath]:
        _, with_weights = weights(self.flow)
        return with_weights(state.theta), neural_galerkin.path_of(state)


@final
class SimulationTrainer(Trainer):
    """`fokkerflow.training.maximum_likelihood`. Its clock counts all time since it was made: it stops runs that are timed."""

    def __init__(self, flow: Flow, settings: MaximumLikelihood, seed: int) -> None:
        self.flow, self.settings, self.seed, self.points = flow, settings, seed, settings.points
        self._since = time.monotonic()

    def start(self) -> maximum_likelihood.State:
        return maximum_likelihood.start(self.flow, self.settings)

    def advance(self, state: maximum_likelihood.State, conditions: Conditions) -> tuple[maximum_likelihood.State, Report]:
        before = self._share(state)
        state, loss = maximum_likelihood.advance(self.flow, self.settings, state, conditions, self.seed, before)
        now = time.monotonic()
        state, self._since = state._replace(seconds=state.seconds + now - self._since), now
        timed = self.settings.seconds is not None
        where = f"step {state.step}" + ("" if timed else f" of {self.settings.steps}")
        return state, Report(where, self._share(state), loss)

    def finished(self, state: maximum_likelihood.State) -> bool:
        return self._share(state) >= 1

    def result(self, state: maximum_likelihood.State) -> tuple[Flow, None]:
        _, with_weights = weights(self.flow)
        return with_weights(state.theta), None

    def _share(self, state: maximum_likelihood.State) -> float:
        return self.settings.share(state.step, state.seconds)


def trainer_for(flow: Flow, settings: GaussNewton | NeuralGalerkin | MaximumLikelihood, gaps: Gaps, seed: int) -> Trainer:
    """The trainer that settings belong to."""
    if isinstance(settings, MaximumLikelihood):
        return SimulationTrainer(flow, settings, seed)
    if isinstance(settings, NeuralGalerkin):
        return NeuralGalerkinTrainer(flow, settings, gaps)
    return GaussNewtonTrainer(flow, settings)
