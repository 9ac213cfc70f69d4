"""Every Python example in the README and the docs runs as it stands."""

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


@pytest.mark.parametrize("source", EXAMPLES)
def test_example_runs(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    exec(compile(source, "example", "exec"), {"__name__": "example"})


def test_links_and_pictures_exist() -> None:
    for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text()):
            if not target.startswith("http"):
                assert (file.parent / target).exists(), f"{file.name} links to {target}"
