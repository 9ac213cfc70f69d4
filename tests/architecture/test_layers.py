"""Data flows one way: sde, fokker_planck, flow, training, densities, inference, report, command line."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

STAGES = ["sde", "fokker_planck", "flow", "training", "densities", "inference", "report", "cli"]
PACKAGE = Path(__file__).parents[2] / "fokkerflow"
FILES = sorted(PACKAGE.rglob("*.py"))


def stage(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in STAGES else None


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_no_stage_imports_a_later_one(file: Path) -> None:
    here = stage("fokkerflow." + ".".join(file.relative_to(PACKAGE).with_suffix("").parts))
    if here is None:
        return
    for node in ast.walk(ast.parse(file.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file}: relative import"
            assert name != "fokkerflow", f"{file}: imports the package root, which imports everything"
            there = stage(name)
            if there is not None:
                assert STAGES.index(there) <= STAGES.index(here), f"{file.name} ({here}) imports {name} ({there})"


def test_import_changes_no_global_jax_setting() -> None:
    code = (
        "import jax; before = {k: getattr(jax.config, k) for k in ('jax_enable_x64', 'jax_default_prng_impl')}\n"
        "import fokkerflow; [getattr(fokkerflow, name) for name in fokkerflow.__all__]\n"
        "assert before == {k: getattr(jax.config, k) for k in before}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
