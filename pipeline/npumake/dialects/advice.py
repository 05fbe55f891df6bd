"""Advice in the words of the file that a project is written in: ADVICE, by dialect.

What is advised is a section of the native document. A file that cannot say it is not advised it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import yaml

from npumake.dialects.edgefirst import advice as edgefirst
from npumake.dialects.openexplorer import advice as openexplorer
from npumake.dialects.phrases import respelling
from npumake.dialects.synaptics import advice as synaptics
from npumake.digest import Json
from npumake.project.sections import Calibration, Method


class Words(NamedTuple):
    """`line` has a section, what it is to say and what it says now: a line of the user's file, or
    nothing. `search` is the line that asks for a search, or nothing; `methods` are worth a trial;
    `fed` says where the file has what the inputs are fed, where that is not our own; `text` takes
    an error, a hint or a note."""

    line: Callable[[str, Json, Json], str]
    search: Callable[[Calibration], str]
    methods: tuple[Method, ...]
    whole_layers: bool = False  # whether what a layer reads and makes has one type
    fed: str = ""
    text: Callable[[str], str] = str


def _native(section: str, advised: Json, _: Json) -> str:
    text = yaml.safe_dump({section: advised}, default_flow_style=True, width=10**6)
    return str(text).strip()[1:-1]


def _search(calibration: Calibration) -> str:
    """Of methods and switches: minutes."""
    return "" if calibration.recipe == "best" else "calibration: {recipe: best}"


NATIVE = Words(_native, _search, ("max", "mse"))
GROUPS = Words(
    openexplorer.line,
    openexplorer.search,
    ("max", "kl"),
    fed=openexplorer.FED,
    text=respelling(openexplorer.PHRASES),
)
ADVICE: Mapping[str, Words] = {
    "ara2": Words(_native, _search, ("max", "mse"), text=respelling(edgefirst.PHRASES)),
    "hb_compile": GROUPS,
    "hb_mapper": GROUPS,
    "synap": Words(
        synaptics.line,
        synaptics.search,
        ("max", "kl"),
        whole_layers=True,
        fed=synaptics.FED,
        text=respelling(synaptics.PHRASES),
    ),
}


def words_of(dialect: str | None) -> Words:
    """Those of the dialect; our own where it has none."""
    return ADVICE.get(dialect or "", NATIVE)
