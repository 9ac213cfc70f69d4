"""The bounded normalizing flow, paper section 4 and appendices A, B and F. `paper` and `anchored` build one."""

from fokkerflow.flow.anchored_start import AnchoredStart
from fokkerflow.flow.chart import Affine, Chart, Identity, Log, Logit, Power
from fokkerflow.flow.config import Coordinate, FlowConfig, Network
from fokkerflow.flow.dirac_start import DiracStart
from fokkerflow.flow.flow import Flow, build_flow, weights
from fokkerflow.flow.lamperti import Lamperti, LampertiInterval
from fokkerflow.flow.presets import anchored, paper
from fokkerflow.flow.reference import SymmetricBeta, TruncatedGamma, Uniform
from fokkerflow.flow.rejection import sample_by_rejection
from fokkerflow.flow.sampling import approximate_draw, base_dimension, exact_draw, sample
from fokkerflow.flow.start import Condition

__all__ = [
    "Affine", "AnchoredStart", "Chart", "Condition", "Coordinate", "DiracStart", "Flow", "FlowConfig", "Identity", "Lamperti",
    "LampertiInterval", "Log", "Logit", "Network", "Power", "SymmetricBeta", "TruncatedGamma", "Uniform", "anchored",
    "approximate_draw", "base_dimension", "build_flow", "exact_draw", "paper", "sample",
    "sample_by_rejection", "weights",
]  # fmt: skip
