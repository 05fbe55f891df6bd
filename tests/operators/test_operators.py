"""The table of truth: what is recorded holds, what holds is what the page and the targets say.

What is run in CI is drawn by the digest of the code: each change of it draws other cells. By
NPUMAKE_EVERY=1 everything runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from draws import drawn
from npumake.engine.rules import RULES
from npumake.targets.reader import read_target
from operators import dying, page, verdicts
from operators.builds import Model
from operators.cases import CASES, MODES
from operators.large import small
from operators.onnx_cases import onnx_cases
from operators.sweep import Child, swept
from operators.truth import COLUMNS, REFUSED, WRONG, Measured, columns_of
from operators.verdicts import UNMEASURED
from operators.worker import Cell

DRAWN, LARGE_DRAWN, OF_ONNX = 16, 1, 16
NEEDED = ("ai_edge_litert", "ethosu", "iree.compiler", "iree.runtime", "openvino")
QUICK = ("hybrid half_even", "tflite", "tflite int16", "onnx")
WIDE = ("tflite", "ethos-u55-128")
LISTED = (*WIDE, "iree-cpu")
JUDGE = "Conv: : Conv, 1x4x8x6"


@pytest.fixture(scope="module", autouse=True)
def _openvino(request):
    """OpenVINO has an interpreter of its own; in CI it is this one."""
    with pytest.MonkeyPatch.context() as patch:
        if "NPUMAKE_OPENVINO_PYTHON" not in os.environ:
            patch.setenv("NPUMAKE_OPENVINO_PYTHON", sys.executable)
        yield


def needs_every_compiler():
    for name in NEEDED:
        pytest.importorskip(name, reason=f"{name} is not installed")


def test_the_page_is_what_the_table_says():
    assert page.FILE.read_text(encoding="utf-8") == page.page()


def test_what_is_recorded_is_of_these_cases():
    _, recorded = verdicts.load()
    assert {key: entry["of"] for key, entry in recorded.items()} == {
        key: verdicts.digest(cases) for key, cases in verdicts.modes().items()
    }
    assert verdicts.cells().keys() == {
        (name, column) for name, case in CASES.items() for column in columns_of(case)
    }


def test_no_compiled_file_is_wrong():
    wrong = {cell: v for cell, v in verdicts.cells().items() if v.startswith(WRONG)}
    assert wrong == {}


def test_every_operator_with_a_kernel_is_in_the_table():
    assert RULES.keys() - MODES.keys() == set()


def test_every_rounding_of_a_hybrid_places_alike():
    found = verdicts.cells()
    for name in CASES:
        placed = {found.get((name, column)) for column in page.ROUNDINGS[:3]} - {None}
        assert len(placed) == 1, name


@pytest.mark.parametrize("name", LISTED)
def test_what_a_target_lists_it_computes_in_integers(name):
    """In some mode, right in all."""
    assert set(read_target(name).operators) - MODES.keys() == set()
    assert set(read_target(name).operators) - integer_operators(name, ("int8", "int16")) == set()


@pytest.mark.parametrize("name", WIDE)
def test_so_it_does_for_int16(name):
    assert set(read_target(name).int16) - integer_operators(f"{name} int16", ("int16",)) == set()


def integer_operators(column: str, types: Sequence[str]) -> set[str]:
    found = verdicts.cells()
    return {
        case.operator
        for case in CASES.values()
        if found[case.name, column].removesuffix(" on CPU") in types
    }


def unlike(found: Mapping[Cell, str], known: Mapping[Cell, str]) -> dict[Cell, str]:
    """The verdicts that are not those recorded; where none is, those that are wrong."""
    measured = {c: v for c, v in found.items() if known[c] != UNMEASURED or v.startswith(WRONG)}
    return {cell: v for cell, v in measured.items() if v != known[cell]}


@pytest.mark.slow
def test_what_is_recorded_holds():
    needs_every_compiler()
    known, names = verdicts.cells(), drawn(sorted(small(CASES)), DRAWN)
    assert unlike(swept(names, list(COLUMNS), children=1), known) == {}


@pytest.mark.slow
def test_what_is_recorded_of_real_sizes_holds():
    needs_every_compiler()
    known, names = verdicts.cells(), drawn(sorted(CASES.keys() - small(CASES)), LARGE_DRAWN)
    assert unlike(swept(names, list(COLUMNS), children=1, at_once=1), known) == {}


@pytest.mark.slow
def test_no_file_of_a_case_of_onnx_is_wrong():
    needs_every_compiler()
    names = drawn(sorted(onnx_cases()), OF_ONNX)
    found = swept(names, QUICK, children=1)
    assert {cell: v for cell, v in found.items() if v.startswith(WRONG)} == {}


def test_a_file_that_kills_its_process_is_wrong_and_the_rest_goes_on():
    child = Child(dying.serve)
    found = child.asked(["a", dying.KILLER, "b"], ["tflite", "onnx"])
    child.close()
    assert found.pop((dying.KILLER, "tflite")) == f"{WRONG}: the process ends with SIGABRT"
    assert set(found.values()) == {"int8"}
    assert len(found) == 5


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda y: np.moveaxis(y, 1, -1), "shape"),
        (lambda y: y.astype(np.float64).astype(np.int8), "type"),
        (lambda y: np.where(y == y.max(), np.float32(np.nan), y), "not finite"),
        (lambda y: np.roll(y, 1, axis=3), "cosine"),
        (lambda y: y + 3 * np.float32(np.abs(y).max() / 100), "off by"),
    ],
    ids=["transposed", "another type", "NaN", "moved by one", "shifted"],
)
def test_the_judge_finds(change, why):
    model, column = Model(CASES[JUDGE]), COLUMNS["hybrid half_even"]
    built = model.built(column.target())
    (right,) = built.engine(model.feeds[0])
    judged = Measured(model, built, column)
    assert judged.wrong(right) is None
    assert why in (judged.wrong(change(right)) or "")


def test_the_judge_finds_one_code_where_none_is_allowed():
    model, column = Model(CASES[JUDGE]), COLUMNS["tflite"]
    built = model.built(column.target())
    (right,) = built.engine(model.feeds[0])
    off = right.copy()
    off.reshape(-1)[0] += np.float32(built.scale)
    assert "1.0 codes beside the integer engine" in (
        Measured(model, built, column).wrong(off) or ""
    )


def test_what_is_refused_says_why():
    for (name, column), verdict in verdicts.cells().items():
        kind, _, why = verdict.partition(": ")
        assert kind != REFUSED or why, (name, column)
