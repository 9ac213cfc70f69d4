"""Training and test laws by name: the paper's (appendices C, D and E), and wider ones for each shipped model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import BDFS, CIR, OU, SVCEV, Heston
from fokkerflow.training.law import Law, LogUniform, Marginal, ShareOfRange, TruncatedNormal, Uniform

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

_ANY_LOG_PRICE = Uniform(-20.0, 20.0)  # y0 and mu shift the density of y and nothing else
_ANY_TREND = Uniform(-2.0, 2.0)

HESTON: Mapping[str, Marginal] = {
    "alpha": TruncatedNormal(0.085, 0.1, _POSITIVE),
    "beta": TruncatedNormal(3.0, 0.6, 0.5, 8.0),
    "sigma": ShareOfRange(0.03, 1.0),
    "mu": _ANY_TREND,
    "rho": TruncatedNormal(-0.8, 0.12, -0.999, 0.999),
}
"""Around the paper's laws, wide enough for the posteriors of its experiments."""

HESTON_WIDE: Mapping[str, Marginal] = {
    "alpha": LogUniform(0.005, 0.5),
    "beta": LogUniform(0.4, 15.0),
    "sigma": ShareOfRange(0.05, 1.0),
    "mu": _ANY_TREND,
    "rho": Uniform(-0.98, 0.5),
}
"""For market data: yearly variances of equities, any speed of mean reversion that daily to monthly data can tell."""

SVCEV_DEFAULT: Mapping[str, Marginal] = {
    "alpha": TruncatedNormal(0.1, 0.07, 0.005),
    "beta": TruncatedNormal(3.0, 0.6, 0.5, 8.0),
    "sigma": TruncatedNormal(0.25, 0.1, 0.02),
    "mu": _ANY_TREND,
    "rho": TruncatedNormal(-0.8, 0.12, -0.999, 0.999),
    "gamma": Uniform(0.5, 1.0),
}

CIR_DEFAULT: Mapping[str, Marginal] = {
    "alpha": LogUniform(0.01, 1.0),
    "beta": LogUniform(0.2, 15.0),
    "sigma": ShareOfRange(0.05, 1.0),
}

OU_DEFAULT: Mapping[str, Marginal] = {
    "kappa": LogUniform(0.1, 20.0),
    "mean": Uniform(-10.0, 10.0),
    "sigma": LogUniform(0.01, 3.0),
}

_HESTON_START: Mapping[str, Marginal] = {"v": Uniform(0.0, 0.25), "y": Uniform(-3.5, 2.5)}
_SVCEV_START: Mapping[str, Marginal] = {"v": Uniform(0.0, 0.25), "y": Uniform(-4.0, 3.0)}
_BDFS_START: Mapping[str, Marginal] = {"v": Uniform(0.0, 0.75), "o": Uniform(-2.5, 2.5), "y": Uniform(-2.5, 2.5)}


class _Marginals(NamedTuple):
    x0: Mapping[str, Marginal]
    parameters: Mapping[str, Marginal]


_LAWS: Mapping[type[SDE], Mapping[str, _Marginals]] = {
    OU: {"default": _Marginals({"x": Uniform(-10.0, 10.0)}, OU_DEFAULT)},
    CIR: {"default": _Marginals({"v": LogUniform(1e-4, 2.0)}, CIR_DEFAULT)},
    Heston: {
        "default": _Marginals({"v": Uniform(0.0, 0.3), "y": _ANY_LOG_PRICE}, HESTON),
        "wide": _Marginals({"v": LogUniform(5e-4, 1.0), "y": _ANY_LOG_PRICE}, HESTON_WIDE),
        "paper": _Marginals(_HESTON_START, HESTON_TRAIN),
        "paper-test": _Marginals(_HESTON_START, HESTON_TEST),
    },
    SVCEV: {
        "default": _Marginals({"v": Uniform(0.0, 0.3), "y": _ANY_LOG_PRICE}, SVCEV_DEFAULT),
        "paper": _Marginals(_SVCEV_START, SVCEV_TRAIN),
        "paper-test": _Marginals(_SVCEV_START, SVCEV_TEST),
    },
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
