"""The report: complete in itself, readable without pictures, and true to the draws."""

import base64
import html
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from fokkerflow.densities.guard import GAP
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.guard_share import GuardShare, guard_share
from fokkerflow.report.build import report_html, report_verdict
from fokkerflow.report.checks import guard_answer, pit_answer, reference_answer
from fokkerflow.report.contents import Contents
from fokkerflow.report.cut_off import cut_off
from fokkerflow.report.sections.chains import sampler_answer
from fokkerflow.report.verdict import Level
from fokkerflow.sde import CIR
from fokkerflow.training import Law, Uniform
from tests.report.posteriors import ou_contents, ou_draws, ou_idata, ou_series
from tests.training.trainings import OU_LAW, untrained


@pytest.fixture(scope="module")
def page() -> str:
    return report_html(ou_contents())


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<style.*?</style>|<[^>]*>", " ", page, flags=re.S)))


def test_it_needs_no_other_file_and_runs_no_code(page: str) -> None:
    assert "<script" not in page
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:|//|[\w./]+\.(css|js|png|svg|woff))""", page)
    assert set(re.findall(r'href="([^"#]*)', page)) == {"", "data:,"}
    assert len(page) < 4_000_000


def test_every_picture_is_whole_and_described(page: str) -> None:
    pictures = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)" width="(\d+)" height="(\d+)" alt="([^"]*)"', page)
    assert len(pictures) == page.count("<img") == 3 + 1 + 3 + 3 + 1 + 2 + 1  # marginals, pairs, traces, ranks, bands, PIT, data
    for data, width, height, description in pictures:
        root = ET.fromstring(base64.b64decode(data))
        drawn = float(root.attrib["width"].removesuffix("pt")) / float(root.attrib["height"].removesuffix("pt"))
        assert drawn == pytest.approx(int(width) / int(height), rel=0.02)
        assert len(description) > 15


def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page


def test_it_says_what_was_found_and_whether_to_trust_it(page: str) -> None:
    text = text_of(page)
    assert "OU: posterior from 59 transitions" in text
    assert "60 observations of x, 0.25 apart." in text
    assert report_verdict(ou_contents()).headline in text
    draws = ou_draws(ou_series(), (4, 400))["mean"]
    low, high = np.quantile(draws, [0.05, 0.95])
    assert f"mean between {low:.3f} and {high:.3f}" in text
    for words in (
        "R-hat",
        "The chains agree",
        "SHA-256 abababababab",
        "fokkerflow infer data.csv --model ou --out out",
        "Seed 1",
    ):
        assert words in text


def test_equal_results_make_equal_reports(page: str) -> None:
    assert report_html(ou_contents()) == page


def test_names_are_text_and_not_markup_and_no_check_is_needed() -> None:
    base, command = ou_contents(), "fokkerflow infer '<script>alert(1)</script>.csv'"
    page = report_html(Contents(base.density, base.series, base.idata, record={"command": command}))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "This was not checked." in page


def test_chains_that_disagree_are_not_to_be_relied_on() -> None:
    kappa = ou_draws(ou_series(), (4, 400))["kappa"] + np.arange(4)[:, None]
    base = ou_contents()
    contents = Contents(base.density, base.series, ou_idata(kappa=kappa), base.name)
    answer = sampler_answer(contents)
    assert answer.level is Level.BAD
    assert "The chains disagree about kappa" in answer.answer
    assert report_verdict(contents).headline == "Do not rely on these results: the sampler failed."


def test_a_few_divergences_ask_for_care() -> None:
    idata = ou_idata()
    idata.sample_stats["diverging"][0, :3] = True
    base = ou_contents()
    assert sampler_answer(Contents(base.density, base.series, idata)).level is Level.CARE
    idata.sample_stats["diverging"][0, :] = True
    assert sampler_answer(Contents(base.density, base.series, idata)).level is Level.BAD


def test_what_the_checks_find_is_what_the_verdict_says() -> None:
    share = GuardShare(0.25, {"kappa": 0.25}, {"kappa": 0.5, GAP: 0.0}, 10, 10)
    assert guard_answer(share, {}).level is Level.CARE
    assert any("kappa in 25" in line for line in guard_answer(share, {}).advice)
    assert pit_answer(None).level is Level.OPEN
    assert reference_answer(None).level is Level.OPEN
    assert reference_answer(None, exact=True).level is Level.GOOD
    assert pit_answer(ou_contents().checks.pit).level is Level.GOOD
    assert reference_answer(ou_contents().checks.reference).level is Level.GOOD


def _posterior_of_a_trained_density(kappa: tuple[float, float]) -> tuple[Surrogate, dict[str, np.ndarray]]:
    """Its law has kappa in (0.5, 4), mean in (-1, 1), sigma in (0.1, 0.5)."""
    rng = np.random.default_rng(0)
    columns = {
        "kappa": rng.uniform(*kappa, (2, 500)),
        "mean": rng.normal(0.1, 0.1, (2, 500)),
        "sigma": rng.normal(0.3, 0.02, (2, 500)),
    }
    return Surrogate(untrained(OU_LAW)), columns


def test_a_posterior_that_leans_on_the_training_law_is_noticed() -> None:
    inside, leaning = (_posterior_of_a_trained_density(kappa) for kappa in ((1.0, 3.5), (3.0, 3.99)))
    assert cut_off(*inside) == {}
    assert list(cut_off(*leaning)) == ["kappa"]
    guard = guard_share(leaning[0], ou_series(), leaning[1])
    assert guard.share == 0  # inside everywhere: only the shape gives it away
    answer = guard_answer(guard, cut_off(*leaning))
    assert answer.level is Level.CARE
    assert answer.answer.startswith("The training law cuts off the posterior of kappa")


def test_an_end_that_the_model_sets_is_its_own() -> None:
    """sigma of CIR just below Feller's limit."""
    law = Law(
        CIR(), {"v": Uniform(0.02, 0.25)}, {"alpha": Uniform(0.05, 0.2), "beta": Uniform(1, 5), "sigma": Uniform(0.05, 2)}
    )
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(0.1, 0.005, 1000), rng.normal(3, 0.1, 1000)
    sigma = np.sqrt(2 * alpha * beta) * rng.uniform(0.9, 1, 1000)
    assert cut_off(Surrogate(untrained(law)), {"alpha": alpha, "beta": beta, "sigma": sigma}) == {}
    assert cut_off(ou_contents().density, ou_idata()) == {}
