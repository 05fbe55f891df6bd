"""A comparison says what the compiled file does, and notes where `check` said otherwise."""

import pytest

from npumake.compilers.file_placement import FilePlacement
from npumake.debug.compared import Comparison, Distance, NodeRow
from npumake.debug.compiled_placement import in_placement
from npumake.targets.reader import read_target

ETHOS, HTP = read_target("ethos-u65-256"), read_target("qnn-htp-v73")
NONE = Distance(0.0, 0.0, None, 0.0, 0.0, 0.0)


def comparison(target, **units) -> Comparison:
    """Rows by node, on the unit's first subgraph or on the CPU."""
    rows = tuple(
        NodeRow(name, target.unit if is_on else "CPU", 0 if is_on else None, "Op",
                1.0, 1.0, None, "int8/int8", NONE, NONE)
        for name, is_on in units.items()
    )  # fmt: skip
    return Comparison(target.name, 1, rows, (), ("another note",))


def test_nodes_that_the_file_leaves_to_the_cpu_are_in_no_subgraph():
    placement = FilePlacement(3, {"b": ("CAST", "GATHER")}, {"a": 0, "c": 2})
    found = in_placement(comparison(ETHOS, a=True, b=True, c=True), placement, ETHOS)
    assert [(row.node, row.on, row.subgraph) for row in found.rows] == [
        ("a", "NPU", 0), ("b", "CPU", None), ("c", "NPU", 2)]  # fmt: skip
    assert found.notes == (
        "another note",
        "the compiled file, unlike `npumake check`, runs b (CAST, GATHER) on the CPU:"
        " 3 subgraphs on the NPU",
    )


def test_a_placement_as_expected_adds_no_note_but_the_numbers_of_subgraphs():
    placement = FilePlacement(2, {"b": ("SQRT",)}, {"a": 0, "c": 1})
    found = in_placement(comparison(ETHOS, a=True, b=False, c=True), placement, ETHOS)
    assert [row.subgraph for row in found.rows] == [0, None, 1]
    assert found.notes == ("another note",)


def test_a_node_of_the_cpu_that_the_file_runs_on_the_unit_is_moved_there():
    placement = FilePlacement(1, {}, {"a": 0, "b": 0})
    found = in_placement(comparison(HTP, a=True, b=False), placement, HTP)
    assert [(row.on, row.subgraph) for row in found.rows] == [("HTP", 0)] * 2
    assert found.notes[1:] == (
        "the compiled file, unlike `npumake check`, runs b on the HTP: 1 subgraph on the HTP",
    )


def test_a_file_without_a_subgraph_says_so():
    placement = FilePlacement(0, {"a": ("SQRT",)}, {})
    found = in_placement(comparison(ETHOS, a=False), placement, ETHOS)
    assert found.notes[1:] == ("nothing in the compiled file runs on the NPU",)


@pytest.mark.parametrize(("count", "end"), [(5, "n4"), (7, "n4 and 2 more")])
def test_a_long_note_counts(count, end):
    rows = {f"n{number}": True for number in range(count)}
    placement = FilePlacement(0, dict.fromkeys(rows, ()), {})
    note = in_placement(comparison(ETHOS, **rows), placement, ETHOS).notes[1]
    assert f"{end} on the CPU: 0 subgraphs" in note


def test_nodes_that_the_file_does_not_name_stay():
    placement = FilePlacement(1, {}, {})
    found = in_placement(comparison(ETHOS, a=True, b=False), placement, ETHOS)
    assert found == comparison(ETHOS, a=True, b=False)
