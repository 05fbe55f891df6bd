"""The files the page is made of, which lie beside this module.

vendor/ holds Apache ECharts 5.6.0 as its npm package has it, with its licence: it draws boxes,
bars and lines as SVG, which prints and can be zoomed, for 1 MB of the page. What a page shows is
some 100 KB.
"""

from __future__ import annotations

from pathlib import Path


def asset(name: str) -> str:
    """The text of the file."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def charts() -> str:
    return (Path(__file__).parent / "vendor" / "echarts.min.js").read_text(encoding="utf-8")
