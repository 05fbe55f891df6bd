"""The static files of the page, stored beside this module.

vendor/ holds Apache ECharts 5.6.0 from its npm package, with its license. It draws charts as SVG,
which prints and zooms, and takes 1 MB of the page; the data take about 100 KB.
"""

from __future__ import annotations

from pathlib import Path


def asset(name: str) -> str:
    """The text of an asset."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def charts() -> str:
    return (Path(__file__).parent / "vendor" / "echarts.min.js").read_text(encoding="utf-8")
