"""ADVICE: by dialect, how advice is worded for the file that configures a project.

Advice is a section of the native document. If a dialect has no key for it, no advice is given.
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


class Wording(NamedTuple):
    """The wording of one dialect.

    `line(section, advised, current)` returns the line to write in the user's file, or "".
    `search` returns the line that starts a search of methods, or "". `methods` are worth a trial.
    `input_settings` names the keys that describe the inputs, "" for those of a native project.
    `text` rewords an error, a hint or a note.
    """

    line: Callable[[str, Json, Json], str]
    search: Callable[[Calibration], str]
    methods: tuple[Method, ...]
    whole_layers: bool = False  # whether the inputs and outputs of a layer share one type
    input_settings: str = ""
    text: Callable[[str], str] = str


def _native(section: str, advised: Json, _: Json) -> str:
    text = yaml.safe_dump({section: advised}, default_flow_style=True, width=10**6)
    return str(text).strip()[1:-1]


def _search(calibration: Calibration) -> str:
    """A search of methods and switches takes minutes."""
    return "" if calibration.recipe == "best" else "calibration: {recipe: best}"


NATIVE = Wording(_native, _search, ("max", "mse"))
GROUPS = Wording(
    openexplorer.line,
    openexplorer.search,
    ("max", "kl"),
    input_settings=openexplorer.INPUT_SETTINGS,
    text=respelling(openexplorer.PHRASES),
)
ADVICE: Mapping[str, Wording] = {
    "ara2": Wording(_native, _search, ("max", "mse"), text=respelling(edgefirst.PHRASES)),
    "hb_compile": GROUPS,
    "hb_mapper": GROUPS,
    "synap": Wording(
        synaptics.line,
        synaptics.search,
        ("max", "kl"),
        whole_layers=True,
        input_settings=synaptics.INPUT_SETTINGS,
        text=respelling(synaptics.PHRASES),
    ),
}


def wording_of(dialect: str | None) -> Wording:
    """The wording of a dialect; that of a native project for None or an unknown dialect."""
    return ADVICE.get(dialect or "", NATIVE)
