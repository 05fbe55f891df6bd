"""The page of a workspace: figures side by side, links that lead on, names that are only text."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from npumake.report.workspace import BuildRow, PastFigures, WorkspaceFigures, workspace_page
from report.browser import CHECKS, opened

HOSTILE = "<img src=x onerror=alert(1)>&\"'\x1b[31m"
NOW = PastFigures(
    "2026-02-01 10:00:00",
    0.9987,
    0.9985,
    20_640,
    (("float", "top1", 97.5), ("quantized", "top1", 96.0)),
    (1, 2),
    ("/model.22/cv3.0/conv/Conv", 0.97),
)
EARLIER = replace(NOW, when="2026-01-01 09:00:00", cosine=0.9, changes=("calibration.method: max",))
ROWS = tuple(
    BuildRow("detector", variant, target, "current", True, (EARLIER, NOW))
    for variant in ("", "kl", "int16_of_the_head")
    for target in ("rdk-x5", "ara240", "sl1680")
)
FIGURES = WorkspaceFigures(
    "firmware", ROWS, {"detector": "projects/detector.html"}, {"broken": "no such file"}
)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attributes if name == "href"]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (400, True)])
def test_every_text_is_read(width: int, is_dark: bool, tmp_path: Path) -> None:
    page = workspace_page(FIGURES).replace("default-src 'none'", "default-src 'unsafe-inline'")
    seen, console = opened(page, tmp_path, CHECKS, width, is_dark)
    assert console == []
    assert seen["texts"] > 100
    assert (seen["background"] == "rgb(255, 255, 255)") is not is_dark
    assert [seen[name] for name in ("overlaps", "faint", "dead", "overflow")] == [[], [], [], 0]


def test_builds_failures_and_earlier_builds_are_told(tmp_path: Path) -> None:
    text = workspace_page(FIGURES)
    assert "9 of 9 builds with gates fail them." in text
    assert "no such file" in text
    assert "top1 float 97.5, quantized 96" in text
    assert text.count("calibration.method: max") == len(ROWS)


def test_a_link_names_the_build_and_the_node_of_a_report() -> None:
    links = Tags(workspace_page(FIGURES)).links
    assert "projects/detector.html#build=detector%40kl%3Aara240" in links
    node = "%2Fmodel.22%2Fcv3.0%2Fconv%2FConv"
    assert f"projects/detector.html#build=detector%3Ardk-x5&node={node}" in links


def test_names_of_strangers_are_text() -> None:
    figures = replace(NOW, weakest=(HOSTILE, 0.5), changes=(HOSTILE,))
    row = BuildRow(HOSTILE, HOSTILE, HOSTILE, HOSTILE, True, (figures, replace(figures)))
    hostile = WorkspaceFigures(HOSTILE, (row,), {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE})
    text = workspace_page(hostile)
    plain = Tags(workspace_page(replace(FIGURES, rows=ROWS[:1])))
    assert {*Tags(text).tags} == {*plain.tags}
    assert "\x1b" not in text


def test_a_column_without_figures_is_left_out() -> None:
    bare = replace(NOW, scores=(), gates=None, weakest=None)
    rows = tuple(replace(row, past=(bare,)) for row in ROWS)
    text = workspace_page(replace(FIGURES, rows=rows))
    assert "Weakest node" not in text
    assert "Scores" not in text
    assert "Compiled cosine" in text


def test_one_build_is_no_line_and_none_is_no_failure() -> None:
    alone = replace(ROWS[0], past=(NOW,))
    unbuilt = replace(ROWS[1], past=(), is_built=False, status="would run")
    text = workspace_page(replace(FIGURES, rows=(alone, unbuilt)))
    assert "<figure" not in text
    assert "would run" in text
    assert "Not built yet." in workspace_page(replace(FIGURES, rows=(unbuilt,)))


def test_the_same_figures_make_the_same_bytes() -> None:
    assert workspace_page(FIGURES) == workspace_page(FIGURES)
