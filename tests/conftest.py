"""Tests run in JAX's 64-bit mode; those that are about the other mode switch it off themselves."""

import jax
import numpy as np
import pytest
from jaxtyping import install_import_hook

from tests.typechecking import CHECKED

jax.config.update("jax_enable_x64", True)
install_import_hook(CHECKED, "tests.typechecking.check")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)
