"""Compile quickly rather than well: the default tests spend their time in the compiler, not in what it makes.

Without LLVM's optimisations and with XLA's older emitters a program compiles several times as fast. The slow tests, which run
long, get programs as users get them, and so does any run with XLA_FLAGS set, be it empty: `XLA_FLAGS= make test`.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import jaxlib

FLAGS = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": "false"}


def compile_quickly() -> None:
    """Has to come before JAX compiles anything; processes that tests start inherit it."""
    os.environ.setdefault("XLA_FLAGS", " ".join(f"--{name}={value}" for name, value in FLAGS.items() if _is_known(name)))


def _is_known(flag: str) -> bool:
    """Whether this jaxlib has the flag: it ends the process at one that it does not know."""
    for library in Path(jaxlib.__file__).parent.glob("libjax_common.*"):
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(flag.encode()) >= 0
    return False
