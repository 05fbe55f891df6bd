"""Every figure that is documented of an operator stands in a condition of the chip's file, compared
the same way and with the same fact: a mistyped one is found here.

The documents lie beside the repository, each constraint with an expression in names of their own;
where they do not, this is skipped. A bound of the documents that says `kh <= 31` is held where some
condition of that operator, or of all, says `kernel_h <= 31`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from npumake.targets.facts import FACTS as KNOWN
from npumake.targets.reader import read_target
from workspaces import shared_data

FOLDER = shared_data().parent / "reference"
CHIPS = {"rdk-x3": "ops_bernoulli2", "rdk-x5": "ops_bayes-e", "rdk-ultra": "ops_bayes"}
SIGNS = {"Lt": "<", "Gt": ">", "LtE": "<=", "GtE": ">=", "Eq": "==", "NotEq": "!="} | {
    "In": "in",
    "NotIn": "not in",
}
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
# The facts that a name of the documents may be, where it is not a fact's own.
FACTS = {
    "C": {"channels", "kernel_channels", "longest", "channels_per_group", "elements"},
    "D": {"depth", "longest"},
    "D_kernel": {"kernel_d"},
    "H": {"height", "longest"},
    "N": {"batch", "outermost"},
    "OC": {"out_channels"},
    "W": {"width", "longest"},
    "batch": {"batch", "rnn_batch"},
    "blocksize": {"block"},
    "collapsed_rank": {"collapsed_rank", "merged_rank"},
    "ch_per_group": {"channels_per_group"},
    "dil": {"dilation_h", "dilation_w", "plain"},
    "dil_h": {"dilation_h"},
    "dil_w": {"dilation_w"},
    "dim0": {"outermost"},
    "group": {"plain"},
    "inner": {"inner_sides"},
    "kc": {"channels_per_group", "kernel_channels"},
    "kd": {"kernel_d"},
    "kh": {"kernel_h"},
    "ksc": {"phase_size"},
    "ksh": {"phase_size"},
    "ksw": {"phase_size"},
    "kw": {"kernel_w"},
    "max_other_dim": {"longest"},
    "num_changed_axes": {"changed_axes"},
    "num_const_inputs": {"constants"},
    "outer": {"outer_sides"},
    "pad": {"pad_h", "pad_w"},
    "padded_32c": {"elements_32c"},
    "padded_8w4c": {"elements_8w4c"},
    "reduced_size": {"reduced"},
    "stride": {"stride_h", "stride_w"},
}
# By operator and bound: what no condition says so, on which chips, and why.
BAYES = ("rdk-x5", "rdk-ultra")
APART = {
    ("Conv", "== 1"): (BAYES, "`plain`: one group, no dilation"),
    ("ConvTranspose", "== 1"): (BAYES, "not both 1: the pair is compared with [1, 1]"),
    ("Gemm", "< 2048"): (("rdk-x3",), "asks what follows on the BPU, placed later: a remark"),
    ("Gemm", "<= 1024"): (("rdk-x3",), "asks what follows on the BPU, placed later: a remark"),
    ("GridSample", "in ['bilinear', 'nearest']"): (BAYES, "opset 20 calls it linear, too"),
    ("Pad", "<= [2, 3]"): (("rdk-x3",), "a set of axes: the other two are not padded"),
    ("Softmax", "== 3"): (BAYES, "of opsets below 13, which no upgraded model has"),
}


class Bound(NamedTuple):
    """What is compared, by its names, how, and with what."""

    names: frozenset[str]
    said: str


def bounds(text: str) -> Iterator[Bound]:
    """Each comparison of an expression that has a constant on one side."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for left, sign, right in zip(sides, node.ops, sides[1:], strict=False):
            said = SIGNS[type(sign).__name__]
            if is_constant(right) and not is_constant(left):
                yield Bound(names(left), f"{said} {constant(right)}")
            elif is_constant(left) and not is_constant(right):
                yield Bound(names(right), f"{FLIPPED.get(said, said)} {constant(left)}")


def is_constant(node: ast.expr) -> bool:
    return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node))


def constant(node: ast.expr) -> Any:
    """2**30 as its number, a tuple or set as a list."""
    value = eval(compile(ast.Expression(node), "documents", "eval"), {"__builtins__": {}})
    return plain(sorted(value)) if isinstance(value, set) else plain(value)


def plain(value: Any) -> Any:
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def names(node: ast.expr) -> frozenset[str]:
    called = {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call)}
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return frozenset().union(*(FACTS.get(name, {name}) for name in found - called))


def documented(chip: str) -> dict[str, list[str]]:
    """The expressions of each operator that the unit runs."""
    file = FOLDER / f"{CHIPS[chip]}.json"
    if not file.is_file():
        pytest.skip("shared/reference is not here")
    document = json.loads(file.read_text())
    general = [each["expr"] for each in document["general_limits"] if "expr" in each]
    rows = {name: row for name, row in document["ops"].items() if row["supported"] == "bpu"}
    found = {
        name: [each["expr"] for each in row.get("constraints", ()) if "expr" in each]
        for name, row in rows.items()
    }
    return found | {"": general}


@pytest.mark.parametrize("chip", CHIPS)
def test_a_bound_of_the_documents_is_one_of_the_file(chip):
    limits, missing, apart = read_target(chip).limits, [], set()
    for operator, expressions in documented(chip).items():
        held = [
            each
            for limit in limits
            if operator in limit.operators or not limit.operators
            for each in bounds(limit.holds)
        ]
        for asked in (each for text in expressions for each in bounds(text)):
            if any(asked.said == each.said and asked.names & each.names for each in held):
                continue
            key = (operator, asked.said)
            if chip in APART.get(key, ((),))[0]:
                apart.add(key)
            else:
                missing.append((operator, sorted(asked.names), asked.said))
    assert missing == []
    assert apart == {key for key, (chips, _) in APART.items() if chip in chips}


@pytest.mark.parametrize("chip", CHIPS)
def test_a_name_of_the_documents_is_a_fact_s(chip):
    said = [each for texts in documented(chip).values() for text in texts for each in bounds(text)]
    assert {name for each in said for name in each.names} <= KNOWN.keys()


@pytest.mark.parametrize(
    ("typed", "found"),
    [("kernel_h <= 31", True), ("kernel_h <= 13", False), ("kernel_h < 31", False),
     ("stride_h <= 31", False), ("1 <= kernel_h <= 31 or rank == 5", True)],
)  # fmt: skip
def test_a_mistyped_figure_sign_or_fact_is_found(typed, found):
    (asked,) = bounds("kh <= 31")
    assert any(asked.said == each.said and asked.names & each.names for each in bounds(typed)) == (
        found
    )
