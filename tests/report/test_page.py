"""The page in a real browser: it draws everything, is quick, and takes no text for markup."""

from __future__ import annotations

from pathlib import Path

import pytest
from report.browser import opened
from report.pages import chain, page_of
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


def test_every_chart_is_drawn_and_the_console_stays_empty(text: str, tmp_path: Path) -> None:
    charts, console = opened(text, tmp_path, CHARTS)
    assert console == []
    assert charts.keys() == {
        *("accumulated", "own", "ranking", "distribution", "activations", "weights")
    }
    assert all(isinstance(paths, int) and paths > 10 for paths in charts.values()), charts


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


def test_a_table_is_sorted_by_its_heads_both_ways(text: str, tmp_path: Path) -> None:
    script = """const heads = [...document.querySelectorAll('#nodes th')];
      const index = heads.findIndex((head) => head.textContent === 'Loses itself');
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


def test_a_search_leaves_the_rows_that_have_every_word(text: str, tmp_path: Path) -> None:
    script = """const input = document.querySelector('#nodes input');
      input.value = 'block1 CONV'; input.dispatchEvent(new Event('input'));
      return [...document.querySelectorAll('#nodes tbody td:first-child')]
        .map((cell) => cell.textContent);"""
    rows, _ = opened(text, tmp_path, script)
    assert rows == ["block1_depthwise", "block1_pointwise"]


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
def test_a_model_of_500_nodes_opens_within_two_seconds(tmp_path: Path) -> None:
    page = page_of(chain(500)).text
    assert len(page) < 3_000_000
    script = "return [performance.now(), document.querySelectorAll('#graph .box').length];"
    found = [opened(page, tmp_path, script) for _ in range(3)]  # the machine has other work too
    assert [console for _, console in found] == [[], [], []]
    assert {boxes for (_, boxes), _ in found} == {499}
    assert min(milliseconds for (milliseconds, _), _ in found) < 2000


def test_the_same_findings_make_the_same_bytes() -> None:
    assert page_of(chain(10)) == page_of(chain(10))
