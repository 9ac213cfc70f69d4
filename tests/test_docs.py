"""Every Python example in the README and the docs runs: as it stands among the slow tests, with few draws by default."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = [
    pytest.param(block, id=f"{file.name}-{i}")
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for i, block in enumerate(re.findall(r"^```python\n(.*?)^```", file.read_text(), flags=re.S | re.M))
]


FEW = {"draws": "40", "warmup": "40"}


def with_few_draws(source: str) -> str:
    return re.sub(r"\b(draws|warmup)=\d+", lambda found: f"{found[1]}={FEW[found[1]]}", source)


@pytest.mark.parametrize("source", EXAMPLES)
def test_example_runs(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(with_few_draws(source), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("source", [e for e in EXAMPLES if with_few_draws(e.values[0]) != e.values[0]])
def test_example_runs_as_it_stands(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(source, tmp_path, monkeypatch)


def run(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    mpl.use("Agg")
    exec(compile(source, "example", "exec"), {"__name__": "example"})


def test_links_and_pictures_exist() -> None:
    for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text()):
            if not target.startswith("http"):
                assert (file.parent / target).exists(), f"{file.name} links to {target}"
