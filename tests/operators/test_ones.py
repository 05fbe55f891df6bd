"""The dimension of one: every operator with an axis, a group, a channel or a constant of size 1.

What is run in CI is drawn by the digest of the code. By NPUMAKE_EVERY=1 everything runs.
"""

from __future__ import annotations

import pytest

from draws import EVERY, drawn, drawn_pairs
from npumake.targets import OWN_TARGETS
from operators.cases import MODES
from operators.ones import is_computed, ones, variants
from operators.sweep import Child
from operators.truth import WRONG
from operators.windows import CONV

DRAWN, OF_CHIPS = 12, 16
QUICK = ("tflite", "onnx")
# Compilers that take seconds; what they make of a size of one is swept by hand.
TOGETHER = ("iree", "openvino", "vela", "torq")


def computed(count: int) -> list[str]:
    """So many cases that onnxruntime computes; by NPUMAKE_EVERY=1 all."""
    names = [name for name in drawn(sorted(ones()), 3 * count) if is_computed(ones()[name])]
    return names if EVERY else names[:count]


def test_every_operator_has_cases_of_size_one():
    assert {case.operator for case in ones().values()} == MODES.keys()


def test_a_mode_is_varied_in_sizes_constants_and_attributes():
    found = {what for what, _ in variants(CONV["groups"])}
    assert {"axis 1", "all axes", "all but channels", "size 6", "size 3", "group=1"} <= found
    assert {"w axis 0", "b axis 0", "b []", "b [1]", "b in full rank"} <= found


@pytest.mark.slow
def test_no_file_of_a_size_of_one_is_wrong():
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    assert wrong(computed(DRAWN), QUICK) == {}


@pytest.mark.slow
def test_no_chip_is_wrong_about_a_size_of_one():
    chips = sorted(OWN_TARGETS - {*QUICK})
    for name, chip in drawn_pairs(computed(OF_CHIPS), chips):
        assert wrong([name], [chip]) == {}


def wrong(names: list[str], columns: tuple[str, ...] | list[str]) -> dict[tuple[str, str], str]:
    child = Child()
    try:
        found = child.asked(names, columns)
    finally:
        child.close()
    return {cell: verdict for cell, verdict in found.items() if verdict.startswith(WRONG)}
