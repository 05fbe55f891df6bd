"""The page in a real browser: it draws everything, is quick, and takes no text for markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from npumake.quant.search.recipe import RecipeTrial
from npumake.report.findings import Findings
from npumake.report.page import page
from report.browser import opened
from report.pages import chain, findings_of, page_of
from workspaces import Workspace

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">&amp;<b>"
CHARTS = """return Object.fromEntries([...document.querySelectorAll('.chart')].map((chart) =>
  [chart.id, chart.dataset.none ?? chart.querySelectorAll('svg path').length]));"""


@pytest.fixture(scope="module")
def text(reported_once: Workspace) -> str:
    return (reported_once.project / "out" / "report.html").read_text(encoding="utf-8")


def test_it_needs_nothing_beside_it(text: str) -> None:
    head = text.partition("<script")[0]
    assert "default-src 'none'" in head
    assert "<link" not in text
    assert "<script src" not in text


@pytest.mark.slow
def test_every_chart_is_drawn_and_the_console_stays_empty(text: str, tmp_path: Path) -> None:
    charts, console = opened(text, tmp_path, CHARTS)
    assert console == []
    assert charts.keys() == {
        *("accumulated", "own", "ranking", "distribution", "activations", "weights")
    }
    assert all(isinstance(paths, int) and paths > 10 for paths in charts.values()), charts


@pytest.mark.slow
def test_every_build_is_told_of(text: str, tmp_path: Path) -> None:
    script = """return data.builds.map((each) => { show(each); return [each.name,
      document.body.dataset.ready, document.querySelectorAll('#graph .box').length,
      document.querySelectorAll('#nodes tbody tr').length,
      document.querySelectorAll('.card image').length]; });"""
    told, console = opened(text, tmp_path, script)
    assert console == []
    assert [name for name, *_ in told] == [
        f"digits{variant}:{chip}" for variant in ("", "@kl") for chip in ("ara240", "rdk-x5")
    ]
    for name, ready, boxes, rows, pictures in told:
        assert (ready, rows, pictures) == (name, 12, 2 * 3)
        assert boxes > rows


def judged(met: bool, name: str) -> Findings:
    """Of a build that was evaluated, with one gate, and a latency that is a lower bound."""
    scores = [
        {"artifact": artifact, "pictures": 9, "metric": "top1", "by_name": {"top1": top1}}
        for artifact, top1 in (("float", 90.0), ("quantized", 80.0))
    ]
    blamed = [{"node": f"{name} conv 0", "lost": 0.5, "origin": []}]
    mending = {"yaml": "quantization: {}\n", "before": 0.5, "after": 0.75, "suffices": False}
    gate = {"index": 0, "what": "too far off", "met": met, "nodes": [], "suggestion": None}
    reasons = {"nodes": blamed, "suggestion": mending}
    estimate = {"latency_ms": 0.0025, "is_bound": True, "said": ["compute alone is known"]}
    told = {"scores": scores, "gates": [gate | ({} if met else reasons)], "estimate": estimate}
    return Findings({**findings_of(chain(10, name)).document, **told})


@pytest.mark.slow
def test_the_verdict_stands_first_and_leads_to_what_costs_most(tmp_path: Path) -> None:
    text = page({"net:a": judged(True, "a"), "net:b": judged(False, "b")}, {}).text
    script = """const said = [...document.querySelectorAll('main .verdict, main .failing li')]
        .map((each) => each.textContent);
      document.querySelector('.failing button').click();
      const current = document.querySelector('#summary tr[aria-current=true]').dataset.key;
      location.hash = document.querySelector('#evaluation .gates a').hash; follow();
      const cells = [...document.querySelectorAll('#summary tbody tr:last-child td')];
      const cell = (head) => cells[[...document.querySelectorAll('#summary th')]
        .findIndex((each) => each.textContent === head)].textContent;
      return [said, current, chosen, cell('Gates'), cell('Lost'), cell('Latency')];"""
    (said, current, chosen, gates, lost, latency), console = opened(text, tmp_path, script)
    assert console == []
    assert said[:2] == ["1 of 2 builds fail their gates.", "net:b: too far off"]
    assert said[2].startswith("top1 drops by at most 10 (net:a); the worst output has a cosine of ")
    assert (current, chosen) == ("net:b", "b conv 0")
    assert (gates, lost) == ("1 of 1 not met", "10")
    assert latency == "compute bound only: 2.50 µs"


@pytest.mark.slow
def test_gates_that_are_met_are_said_so_and_none_are_too(tmp_path: Path) -> None:
    script = "return document.querySelector('.verdict').textContent;"
    met, _ = opened(page({"net:a": judged(True, "a")}, {}).text, tmp_path, script)
    none, _ = opened(page_of(chain(10)).text, tmp_path, script)
    assert met == "All gates are met in 1 build."
    assert none == "This project defines no gates."


@pytest.mark.slow
def test_a_trial_is_told_with_its_cosine_where_that_is_another_figure(tmp_path: Path) -> None:
    trials = (RecipeTrial("mse", 0.75, 0.5, kept=True), RecipeTrial("kl", 0.25, 0.25, kept=False))
    text = page({"net:a": findings_of(chain(10), trials)}, {}).text
    script = "return document.querySelector('#provenance .recipe pre').textContent.split('\\n');"
    lines, console = opened(text, tmp_path, script)
    assert console == []
    assert lines[-2:] == [
        "kept  mse  closeness 0.750000, cosine 0.500000",
        "tried  kl  closeness 0.250000",
    ]


@pytest.mark.slow
def test_a_slash_leads_to_the_search_of_nodes(text: str, tmp_path: Path) -> None:
    script = """const key = new KeyboardEvent('keydown', { key: '/', bubbles: true });
      document.body.dispatchEvent(key);
      return document.activeElement.getAttribute('aria-label');"""
    label, console = opened(text, tmp_path, script)
    assert (label, console) == ("search nodes", [])


@pytest.mark.slow
def test_a_table_is_sorted_by_its_heads_both_ways(text: str, tmp_path: Path) -> None:
    script = """const heads = [...document.querySelectorAll('#nodes th')];
      const index = heads.findIndex((head) => head.textContent === 'Own error');
      const rows = () => [...document.querySelectorAll('#nodes tbody tr')];
      const column = () => rows().map((row) => Number(row.cells[index].textContent));
      const button = heads[index].firstChild;
      button.click(); const up = column(); button.click();
      return [up, column(), heads[index].getAttribute('aria-sort')];"""
    (up, down, told), _ = opened(text, tmp_path, script)
    assert up == sorted(up)
    assert down == sorted(up, reverse=True)
    assert up != down
    assert told == "descending"


@pytest.mark.slow
def test_a_search_leaves_the_rows_that_have_every_word(text: str, tmp_path: Path) -> None:
    script = """const input = document.querySelector('#nodes input');
      input.value = 'block1 CONV'; input.dispatchEvent(new Event('input'));
      return [...document.querySelectorAll('#nodes tbody td:first-child')]
        .map((cell) => cell.textContent);"""
    rows, _ = opened(text, tmp_path, script)
    assert rows == ["block1_depthwise", "block1_pointwise"]


@pytest.mark.slow
def test_a_node_is_chosen_by_keys_alone(text: str, tmp_path: Path) -> None:
    script = """const svg = document.querySelector('#graph svg');
      const key = (key) => (document.activeElement.closest('svg') ? document.activeElement : svg)
        .dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      svg.focus(); const before = svg.getAttribute('viewBox');
      key('+'); const zoomed = svg.getAttribute('viewBox');
      key('n'); key('n'); key('Enter');
      return [before !== zoomed, chosen, data.builds[0].graph.nodes[1].name,
        document.getElementById('node').value];"""
    (zoomed, chosen, second, selected), console = opened(text, tmp_path, script)
    assert zoomed
    assert chosen == selected == second
    assert console == []


@pytest.mark.slow
def test_names_of_strangers_are_text(tmp_path: Path) -> None:
    page = page_of(chain(10, HOSTILE), f"{HOSTILE}:chip").text
    script = """return [document.images.length, document.title,
      document.querySelector('#nodes td').textContent,
      document.getElementById('title').textContent];"""
    (images, title, cell, headline), console = opened(page, tmp_path, script)
    assert console == []
    assert images == 0
    assert title != "taken"
    assert cell == f"{HOSTILE} conv 0"
    assert headline == f"{HOSTILE}: report"


@pytest.mark.slow
def test_a_model_of_500_nodes_is_drawn_whole(tmp_path: Path) -> None:
    page = page_of(chain(500)).text
    assert len(page) < 3_000_000
    script = "return document.querySelectorAll('#graph .box').length;"
    assert opened(page, tmp_path, script) == (499, [])


def test_the_same_findings_make_the_same_bytes() -> None:
    assert page_of(chain(10)) == page_of(chain(10))
