"""The report in a browser: no console message, no missing picture, nothing wider than the screen, at desk and phone width.

Chromium opens the report inside a frame of the width that is asked for (it does not make windows as narrow as a phone's), and
a few lines of script around it measure what is there.
"""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fokkerflow.report.build import report_html
from tests.report.posteriors import ou_contents

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr",
    "--virtual-time-budget=10000", "--window-size=1400,1000",
]  # fmt: skip

MEASURE = """
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, width = page.documentElement.clientWidth;
  const scrolled = e => { for (let p = e.parentElement; p; p = p.parentElement)
    if (["auto", "scroll"].includes(frame.contentWindow.getComputedStyle(p).overflowX)) return true; return false; };
  const wide = [...page.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > width + 1 && !scrolled(e));
  const pictures = [...page.images];
  Promise.all(pictures.map(i => i.decode().then(() => true, () => false))).then(whole => {
    document.querySelector("#found").textContent = JSON.stringify({
      width, scrollWidth: page.documentElement.scrollWidth,
      wide: wide.map(e => e.outerHTML.slice(0, 120)),
      pictures: pictures.length, broken: whole.filter(ok => !ok).length,
      smallest: Math.min(...pictures.map(i => i.getBoundingClientRect().width)),
      font: Math.min(...[...page.querySelectorAll("p, td, th, a, figcaption")].map(
        e => parseFloat(frame.contentWindow.getComputedStyle(e).fontSize))),
      heading: page.querySelector("h1").textContent,
    });
  });
};
</script>
"""


def measured(page: str, width: int, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What the script around the page finds, and what the console says."""
    assert CHROMIUM is not None
    frame = f'<iframe srcdoc="{html.escape(page)}" style="border:0;width:{width}px;height:900px"></iframe>'
    around = folder / f"around-{width}.html"
    around.write_text(f'<!doctype html><meta charset="utf-8"><body>{frame}<pre id="found"></pre>{MEASURE}', encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", around.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.S)
    assert found, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(html.unescape(found.group(1))), console


@pytest.fixture(scope="module")
def page() -> str:
    return report_html(ou_contents())


@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_is_whole_at_every_width(page: str, width: int, tmp_path: Path) -> None:
    found, console = measured(page, width, tmp_path)
    assert console == []
    assert found["heading"] == "OU: posterior from 59 transitions"
    assert found["pictures"] == page.count("<img")
    assert found["broken"] == 0
    assert found["smallest"] > 250
    assert found["width"] == width
    assert found["scrollWidth"] <= width
    assert found["wide"] == []
    assert found["font"] >= 11


def test_the_test_sees_what_is_wrong(page: str, tmp_path: Path) -> None:
    """Broken on purpose: a picture that is none, a block that is too wide, an error in the console."""
    broken = page.replace("data:image/svg+xml;base64,", "data:image/svg+xml;base64,AAAA", 1)
    broken = broken.replace("</main>", '<div style="width:2000px">wide</div><script>console.error("wrong")</script></main>')
    found, console = measured(broken, 390, tmp_path)
    assert found["broken"] == 1
    assert found["scrollWidth"] > 390
    assert any("wide" in element for element in found["wide"])
    assert any("wrong" in line for line in console)
