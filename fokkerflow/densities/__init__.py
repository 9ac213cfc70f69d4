"""Transition densities behind one interface: exact ones here, others beside them."""

from fokkerflow.densities import cir, gaussian, heston  # noqa: F401  each registers its densities
from fokkerflow.densities.density import Density
from fokkerflow.densities.registry import density, methods, register

__all__ = ["Density", "density", "methods", "register"]
