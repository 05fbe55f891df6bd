"""VERDICTS: what the last whole sweep found, as text that shows in a diff.

    operator → mode → {"of": digest of its cases, verdict: columns}

A column that judges the cases of a mode differently stands with each: `tflite @ Conv, 1x4x8x6`.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from operators.case import Case
from operators.cases import CASES
from operators.truth import columns_of

Cell = tuple[str, str]  # name of the case, name of the column
FILE = Path(__file__).parent / "verdicts.json"
TOOLS = (
    "ai-edge-litert",
    "ethos-u-vela",
    "iree-base-compiler",
    "onnxruntime",
    "openvino",
    "tosa-converter-for-tflite",
)
AT = " @ "
UNMEASURED = "not measured"


def modes() -> dict[tuple[str, str], list[Case]]:
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in CASES.values():
        found[case.operator, case.mode].append(case)
    return found


def digest(cases: Iterable[Case]) -> str:
    return hashlib.sha256(" ".join(case.digest for case in cases).encode()).hexdigest()[:12]


def document(cells: Mapping[Cell, str]) -> dict[str, object]:
    """Of every cell of the table; one that was not swept says so."""
    operators: dict[str, dict[str, object]] = defaultdict(dict)
    for (operator, mode), cases in modes().items():
        by_verdict: dict[str, list[str]] = defaultdict(list)
        for column in columns_of(cases[0]):
            found = {case.around: cells.get((case.name, column), UNMEASURED) for case in cases}
            if len(set(found.values())) == 1:
                by_verdict[found[cases[0].around]].append(column)
                continue
            for around, verdict in found.items():
                by_verdict[verdict].append(f"{column}{AT}{around}")
        operators[operator][mode] = {"of": digest(cases), **dict(sorted(by_verdict.items()))}
    return {"tools": {name: version(name) for name in TOOLS}, "operators": operators}


def save(cells: Mapping[Cell, str]) -> None:
    text = json.dumps(document(cells), indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")


def load() -> tuple[Mapping[str, str], Mapping[tuple[str, str], Mapping[str, object]]]:
    """The versions of the tools, and what is recorded of each mode."""
    held = json.loads(FILE.read_text(encoding="utf-8"))
    recorded = {
        (operator, mode): entry
        for operator, entries in held["operators"].items()
        for mode, entry in entries.items()
    }
    return held["tools"], recorded


def is_measured(case: Case, known: Mapping[Cell, str]) -> bool:
    """Whether each of its cells is known."""
    verdicts = (known.get((case.name, column), UNMEASURED) for column in columns_of(case))
    return UNMEASURED not in verdicts


def cells() -> dict[Cell, str]:
    """Every recorded cell of a case that is still the same."""
    _, recorded = load()
    known = [
        (cases, recorded[key])
        for key, cases in modes().items()
        if key in recorded and recorded[key]["of"] == digest(cases)
    ]
    return {cell: verdict for each in known for cell, verdict in _cells(*each)}


def _cells(cases: list[Case], entry: Mapping[str, object]) -> Iterator[tuple[Cell, str]]:
    for verdict, columns in entry.items():
        for column in columns if isinstance(columns, list) else ():
            name, _, around = column.partition(AT)
            for case in cases:
                if around in ("", case.around):
                    yield (case.name, name), verdict
