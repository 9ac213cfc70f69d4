"""Tests run in JAX's 64-bit mode; those that are about the other mode switch it off themselves."""

import jax
import numpy as np
import pytest
from jaxtyping import install_import_hook

from tests.compilation import compile_quickly
from tests.typechecking import CHECKED

jax.config.update("jax_enable_x64", True)
install_import_hook(CHECKED, "tests.typechecking.check")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr != "slow":
        compile_quickly()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)
