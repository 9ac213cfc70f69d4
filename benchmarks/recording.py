"""How every benchmark is run and keeps its answer: ``python benchmarks/NAME.py [--record]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

RESULTS = Path(__file__).parent / "results"


def best_seconds(function: Callable[..., Any], *arguments: Any, repeats: int = 7) -> float:
    """The shortest of several runs, compilation not counted."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - started)
    return min(times)


def run(name: str, doc: str, measure: Callable[[], dict[str, Any]]) -> None:
    """Print the answer of `measure`; with ``--record`` keep it in results/`name`.json, which appears complete or not at all."""
    question = doc.splitlines()[0]
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--record", action="store_true", help=f"keep the answer in benchmarks/results/{name}.json")
    record = parser.parse_args().record
    jax.config.update("jax_enable_x64", True)
    machine = {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version(), "jax": jax.__version__}
    text = json.dumps({"question": question, "machine": machine, "answer": measure()}, indent=2)
    print(text)
    if record:
        RESULTS.mkdir(exist_ok=True)
        draft = RESULTS / f"{name}.json.tmp"
        draft.write_text(text + "\n")
        draft.replace(RESULTS / f"{name}.json")
