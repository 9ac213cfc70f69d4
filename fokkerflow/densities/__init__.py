"""Transition densities behind one interface: exact ones here, others beside them."""

from fokkerflow.densities import (  # noqa: F401  each registers its densities
    ait_sahalia,
    augmentation,
    bdfs,
    cir,
    gaussian,
    heston,
    ito_taylor,
    pseudo_likelihoods,
    saddlepoint,
    svcev,
)
from fokkerflow.densities.density import Density
from fokkerflow.densities.guard import Guard
from fokkerflow.densities.registry import density, methods, register
from fokkerflow.densities.surrogate import Surrogate, load, pretrained, train

__all__ = ["Density", "Guard", "Surrogate", "density", "load", "methods", "pretrained", "register", "train"]
