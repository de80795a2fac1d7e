"""The report is one self-contained and complete file."""

import json
import re

from report_page import Page, data_of

from cobre.report.document import write_report


def test_page_has_all_sections_and_unique_ids(finished_page):
    page = Page(finished_page)
    assert len(page.ids) == len(set(page.ids))
    for section in (
        "convergence",
        "costs",
        "explore",
        "system",
        "water",
        "generation",
        "prices",
        "timing",
        "provenance",
    ):
        assert section in page.ids
        assert ("a", "href", f"#{section}") in page.attributes


def test_nothing_is_fetched(finished_page):
    page = Page(finished_page)
    assert not [entry for entry in page.attributes if entry[1] == "src"]
    links = [value for tag, name, value in page.attributes if name in ("href", "xlink:href")]
    assert all(link.startswith(("#", "data:")) for link in links)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", finished_page))
    assert addresses <= {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}  # one of them in a comment
    assert "default-src 'none'" in finished_page


def test_page_lists_what_reproduces_the_run(finished_page, finished_run):
    page = Page(finished_page)
    summary = json.loads((finished_run / "summary.json").read_text())
    study = json.loads((finished_run / "study.json").read_text())
    assert summary["digest"] in page.text
    assert summary["simulation_digest"] in page.text
    assert summary["stop_reason"] in page.text
    assert "training.stopping_rules[0].limit" in page.text
    for name, version in study["versions"].items():
        assert name in page.text
        assert version in page.text
    assert data_of(finished_page)["state"] == "complete"
    assert data_of(finished_page)["warnings"] == []  # a section that could not be made would be named here
    assert 'class="banner' not in finished_page


def test_charts_have_text_alternatives(finished_page):
    labels = [value for tag, name, value in Page(finished_page).attributes if (tag, name) == ("div", "aria-label")]
    assert len([label for label in labels if "." in label]) == len(data_of(finished_page)["charts"])
    assert any(label.startswith("Bounds by iteration. The lower bound goes from") for label in labels)


def test_every_chart_has_an_explanation(finished_page):
    for key in data_of(finished_page)["charts"]:
        card = finished_page[finished_page.index(f'data-chart="{key}"') :]
        assert re.match(r'[^<]*><figcaption><h3>[^<]+</h3><p class="explanation">[A-Z][^<]+\.</p>', card), key


def test_charts_have_captions_of_their_axes(finished_page):
    text = Page(finished_page).text
    for caption in ("$ by iteration", "s by iteration", "s by rank", "scenarios, by cost in"):
        assert caption in text


def test_report_of_same_run_is_identical(finished_run, finished_page, tmp_path):
    assert write_report(finished_run, tmp_path / "again.html").read_text() == finished_page


def test_report_is_written_to_the_output_directory(run_copy):
    assert write_report(run_copy) == run_copy / "report.html"
    assert (run_copy / "report.html").stat().st_size < 1_000_000


def test_names_are_escaped(run_copy):
    study = json.loads((run_copy / "study.json").read_text())
    study["name"] = "<script>alert(1)</script> & $title"
    study["entities"]["hydros"][0]["name"] = '</script><img src=x onerror="alert(2)">'
    study["entities"]["hydros"][1]["name"] = r"$\frac{$ both $ signs"
    study["entities"]["buses"][0]["name"] = 'id="x" url(#y) \''
    study["warnings"] = ["<b>bold</b>"]
    (run_copy / "study.json").write_text(json.dumps(study))
    text = write_report(run_copy).read_text()
    page = Page(text)
    assert not [entry for entry in page.attributes if entry[0] == "img" or entry[1].startswith("on")]
    assert text.count("<script") == 2
    assert "<script>alert(1)</script> & $title" in page.text
    assert "<b>bold</b>" in page.text
    assert r"$\frac{$ both $ signs" in data_of(text)["explorer"]["kinds"][0]["names"]


def test_warnings_are_at_the_top(run_copy):
    with (run_copy / "events.jsonl").open("a") as log:
        log.write(json.dumps({"event": "warning", "time": 1.0, "message": "the sea is rough"}) + "\n")
    text = write_report(run_copy).read_text()
    assert data_of(text)["warnings"] == ["the sea is rough"]
    assert text.index("the sea is rough") < text.index('id="convergence"')
