"""The wire is walked past weights, and past nothing else, whatever a file has been made to be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.graph.proto import has_grids_and_branches
from npumake.graph.wire import bytes_without_weights

WEIGHT = b"Loop" * 50
GROUP = bytes([99 << 3 & 127 | 128 | 3, 99 >> 4, 99 << 3 & 127 | 128 | 4, 99 >> 4])  # an empty one


def model(*operators: str, weights: int = 1) -> bytes:
    values = np.frombuffer(WEIGHT, np.float32)
    named = [onnx.numpy_helper.from_array(values, f"w{number}") for number in range(weights)]
    nodes = [onnx.helper.make_node(operator, ["w0"], [operator]) for operator in operators]
    graph = onnx.helper.make_graph(nodes, "g", [], [], named)
    return onnx.helper.make_model(graph, producer_name="somebody").SerializeToString()


def test_all_but_the_weights_is_there() -> None:
    words = bytes_without_weights(model("Scan", "Neg", weights=3))
    assert WEIGHT not in words
    assert all(word in words for word in (b'"\x04Scan', b'"\x03Neg', b"somebody"))
    assert b"w1" not in words


def test_graphs_that_come_in_parts_are_walked_one_after_the_other() -> None:
    words = bytes_without_weights(model("Neg") + model("Scan"))
    assert WEIGHT not in words
    assert b'"\x03Neg' in words
    assert b'"\x04Scan' in words


@given(st.data())
@examples(50)
def test_of_a_torn_file_everything_is_looked_at(data: st.DataObject) -> None:
    whole = model("Neg")
    torn = whole[: data.draw(st.integers(len(whole) - len(WEIGHT), len(whole) - 30))]
    assert bytes_without_weights(torn) == torn


def test_groups_which_onnx_does_not_have_hide_nothing() -> None:
    """A parser skips their two tags; who took them for four bytes would lose its place."""
    hidden = GROUP + model("If", "DequantizeLinear")
    assert bytes_without_weights(hidden) == hidden


@pytest.mark.parametrize("kind", [1, 5, 0])
def test_fields_of_every_kind_are_walked_past(kind: int) -> None:
    held = {1: bytes(8), 5: bytes(4), 0: b"\x81\x01"}[kind]
    words = bytes_without_weights(bytes([15 << 3 | kind]) + held + model("Scan"))
    assert words.startswith(held)
    assert b'"\x04Scan' in words
    assert WEIGHT not in words


def test_a_word_in_a_weight_is_no_branch() -> None:
    assert not has_grids_and_branches(model("DequantizeLinear"))
