"""Settings of Neural Galerkin by name: the paper's three (its appendices C, D and E), a reduced and an anchored one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import BDFS, SVCEV, Heston
from fokkerflow.training.flow_options import AnchoredFlow, PaperFlow
from fokkerflow.training.galerkin_settings import NeuralGalerkin
from fokkerflow.training.preset import Preset

_HESTON = PaperFlow(box=((0.0, 3.0), (-6.5, 6.5)), layers=5, components=7, width=8, depth=2)

_HESTON_TRAINER = NeuralGalerkin(points=15_000, form="density", solver="lsmr")

_PAPER: Mapping[type[SDE], tuple[PaperFlow, NeuralGalerkin]] = {
    Heston: (_HESTON, _HESTON_TRAINER),
    SVCEV: (
        PaperFlow(box=((0.0, 3.0), (-6.5, 6.5)), layers=5, components=4, width=5, depth=4),
        NeuralGalerkin(points=13_512, form="log", solver="lsmr"),
    ),
    BDFS: (
        PaperFlow(
            box=((0.0, 2.0), (-3.0, 3.0), (-3.0, 3.0)),
            layers=(4, 4, 5),
            components=5,
            width=(6, 6, 8),
            depth=4,
            parents=((), (), (0, 1)),
        ),
        NeuralGalerkin(points=17_338, form="density", solver="lsmr"),
    ),
}
"""Tables "Computational setup" of the paper. It prints neither the width of its start nor the tolerances of RK5(4) and LSMR."""

_ELSEWHERE = (dataclasses.replace(_HESTON, box=None), _HESTON_TRAINER)

ANCHORED = Preset(AnchoredFlow(components=5, width=12), NeuralGalerkin(points=2500, cutoff=15.0, damping=1e-5))
"""The march of an anchored flow: tau is an input, and theta moves as well."""


def paper(sde: SDE) -> Preset:
    """The paper's setting of a model; for one that is not in the paper Heston's, and the box is for the caller to give."""
    flow, trainer = _PAPER.get(type(sde), _ELSEWHERE)
    return Preset(flow, trainer)


def reduced(sde: SDE) -> Preset:
    """The paper's method with less of everything: its start, GRU, reference and box, fewer layers, weights and points."""
    flow, _ = _PAPER.get(type(sde), _ELSEWHERE)
    smaller = dataclasses.replace(flow, layers=3, components=3, width=8, depth=1, start_width=3e-3)
    return Preset(smaller, NeuralGalerkin(points=2500, form="log", cutoff=15.0, damping=3e-6, tolerance=4e-3))
