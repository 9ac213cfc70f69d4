"""The densities that ship: against exact ones, at draws of their own training laws, and what their files say of them."""

from __future__ import annotations

import numpy as np
import pytest

import fokkerflow
from fokkerflow.densities import pretrained
from fokkerflow.sde.moments import moments

SHIPPED = pretrained()
REFERENCE = {"svcev": "fourier"}
MEDIAN_ERROR = {"bdfs": 2e-3, "cir": 2e-3, "heston": 2e-3, "heston-wide": 5e-3, "ou": 1e-3, "svcev": 2e-3}
"""Of log q, over the training law, at the longest gap, within two standard deviations."""


def test_what_ships() -> None:
    assert set(MEDIAN_ERROR) <= set(SHIPPED)
    assert sum(file.stat().st_size for file in SHIPPED.values()) < 5e6


@pytest.mark.parametrize("name", MEDIAN_ERROR)
def test_a_shipped_density_is_close_to_the_exact_one(name: str) -> None:
    """This also notices when equal weights come to mean another density: then raise VERSION in flow/config.py."""
    density = fokkerflow.load(name)
    sde, law, rng = density.sde, density.trained.law, np.random.default_rng(3)
    x0, p = law.sample(rng, 24)
    dt = density.longest_dt
    means, covariances = zip(*(moments(sde, 0.0, dt, a, b) for a, b in zip(x0, p, strict=True)), strict=True)
    mean, sd = np.array(means), np.sqrt(np.array([np.diagonal(c) for c in covariances]))
    z = rng.uniform(-1.5, 1.5, size=x0.shape)
    positive = np.array([domain.is_half_line for domain in sde.domains])
    x1 = np.where(positive, mean * np.exp(np.clip(sd / mean, -1, 1) * z), mean + sd * z)
    exact = fokkerflow.density(REFERENCE.get(name, "exact"), sde)
    error = np.asarray(density.log_prob_batch(x1, x0, dt, p)) - np.asarray(exact.log_prob_batch(x1, x0, dt, p))
    assert np.median(np.abs(error)) < MEDIAN_ERROR[name]
    assert density.check(x0, dt, p).share_outside < 0.2  # normal laws have a percent beyond three standard deviations


@pytest.mark.parametrize("name", MEDIAN_ERROR)
def test_a_shipped_density_says_how_it_was_made_and_what_it_is_worth(name: str) -> None:
    density = fokkerflow.load(name)
    record = density.trained.record
    assert record.command.startswith(f"fokkerflow train {density.sde.name} --law")
    assert density.certificate is not None
    assert density.certificate.unusable == 0
    assert set(record.versions) >= {"jax", "fokkerflow"}
    assert record.history[-1] < 0.5 * record.history[0]
