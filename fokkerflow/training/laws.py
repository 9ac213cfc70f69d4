"""Training and test laws by name: the paper's (appendices C, D and E), and wider ones for each shipped model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import BDFS, SVCEV, Heston
from fokkerflow.training.law import Law, Marginal, TruncatedNormal, Uniform

_POSITIVE = 0.0

HESTON_TRAIN: Mapping[str, Marginal] = {
    "alpha": TruncatedNormal(0.1, 0.08, _POSITIVE),
    "beta": TruncatedNormal(3.0, 0.2, _POSITIVE),
    "sigma": TruncatedNormal(0.25, 0.08, _POSITIVE),
    "mu": TruncatedNormal(0.05, 0.03),
    "rho": TruncatedNormal(-0.8, 0.08, -1.0, 1.0),
}
"""Equation (prior_heston_train)."""

HESTON_TEST: Mapping[str, Marginal] = {
    "alpha": TruncatedNormal(0.075, 0.1, _POSITIVE),
    "beta": TruncatedNormal(3.0, 0.2, _POSITIVE),
    "sigma": TruncatedNormal(0.25, 0.1, _POSITIVE),
    "mu": TruncatedNormal(0.05, 0.1),
    "rho": TruncatedNormal(-0.8, 0.1, -1.0, 1.0),
}
"""Equation (test_heston_distribution)."""

SVCEV_TRAIN: Mapping[str, Marginal] = {**HESTON_TRAIN, "gamma": TruncatedNormal(1.0, 0.2, 0.5, 1.0)}
"""Equation (prior_svcev_train): Heston's, and the elasticity."""

SVCEV_TEST: Mapping[str, Marginal] = {
    "alpha": TruncatedNormal(0.1, 0.03, _POSITIVE),
    "beta": TruncatedNormal(3.0, 0.2, _POSITIVE),
    "sigma": TruncatedNormal(0.25, 0.03, _POSITIVE),
    "mu": TruncatedNormal(0.05, 0.03),
    "rho": TruncatedNormal(-0.8, 0.07, -1.0, 1.0),
    "gamma": TruncatedNormal(1.0, 0.2, 0.5, 1.0),
}
"""Equation (test_svcev_distribution)."""

BDFS_TRAIN: Mapping[str, Marginal] = {
    "k1": Uniform(1.5, 4.0),
    "alpha1": Uniform(0.005, 0.25),
    "sigma1": Uniform(0.05, 0.4),
    "k2": Uniform(4.0, 10.0),
    "alpha2": Uniform(-1.5, 0.25),
    "sigma2": Uniform(1e-3, 0.25),
    "k3": Uniform(7.5, 13.0),
    "rho": Uniform(0.1, 0.9),
}
"""Equation (eq:ngnf_inf_tilde_pi_bdfs)."""

_HESTON_START: Mapping[str, Marginal] = {"v": Uniform(0.0, 0.25), "y": Uniform(-3.5, 2.5)}
_SVCEV_START: Mapping[str, Marginal] = {"v": Uniform(0.0, 0.25), "y": Uniform(-4.0, 3.0)}
_BDFS_START: Mapping[str, Marginal] = {"v": Uniform(0.0, 0.75), "o": Uniform(-2.5, 2.5), "y": Uniform(-2.5, 2.5)}


class _Marginals(NamedTuple):
    x0: Mapping[str, Marginal]
    parameters: Mapping[str, Marginal]


_LAWS: Mapping[type[SDE], Mapping[str, _Marginals]] = {
    Heston: {"paper": _Marginals(_HESTON_START, HESTON_TRAIN), "paper-test": _Marginals(_HESTON_START, HESTON_TEST)},
    SVCEV: {"paper": _Marginals(_SVCEV_START, SVCEV_TRAIN), "paper-test": _Marginals(_SVCEV_START, SVCEV_TEST)},
    BDFS: {"paper": _Marginals(_BDFS_START, BDFS_TRAIN)},
}


def names(sde: SDE) -> list[str]:
    """The names of the laws that come with the package for a model."""
    return list(_LAWS.get(type(sde), {}))


def shipped(name: str, sde: SDE) -> Law:
    """A law by its name, for one model."""
    if name not in names(sde):
        listed = ", ".join(map(repr, names(sde))) or "none: pass a fokkerflow.Law"
        raise ValueError(f"Got the law {name!r}; those that come with the package for {sde.label} are: {listed}.")
    return Law(sde, *_LAWS[type(sde)][name])
