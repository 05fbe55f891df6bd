"""A documented constraint of a chip is a condition of its file, a remark, or said below why not.

The facts lie beside the repository, one list per chip, constraint by constraint and operator by
operator; where they do not, this is skipped.
"""

import json

import pytest

from npumake.targets.reader import read_target
from workspaces import shared_data

FACTS = shared_data().parent / "reference"
CHIPS = {"rdk-x3": "ops_bernoulli2", "rdk-x5": "ops_bayes-e", "rdk-ultra": "ops_bayes"}
# What no condition of a chip's file says: words of the constraint, and why.
APART = {
    "H*(W/8)*(C/4)": "asks what follows on the BPU, which is placed later: a remark",
    "and W are both <= 7 the Conv limits": "a Gemm is of one pixel: its kernel is 1",
    "placed on CPU unless": "`on_request` of the target",
    "broadcasting on any axis": "permits everything",
    "any rank": "permits everything",
    "any axis": "permits everything",
    "no limit": "permits everything",
    "enlarging and shrinking": "permits everything",
    "padding >= 0": "ONNX allows no other",
    "modes DCR and CRD": "a SpaceToDepth has no mode in ONNX",
    "ONNX semantics (opset<13": "the upgraded model has the semantics of one axis",
    "same as": "by the name of the other operator",
    "merged into the preceding Conv": "no constraint: where the shortcut goes",
}


@pytest.mark.parametrize("chip", CHIPS)
def test_an_operator_has_a_condition_or_a_remark_for_all_that_is_documented(chip):
    file = FACTS / f"{CHIPS[chip]}.json"
    if not file.is_file():
        pytest.skip("shared/reference is not here")
    target, silent = read_target(chip), {}
    for name, row in json.loads(file.read_text())["ops"].items():
        if row["supported"] != "bpu":
            continue
        said = [each["text"] for each in row.get("constraints", ())]
        left = [text for text in said if not any(part in text for part in APART)]
        held = sum(name in limit.operators for limit in target.limits)
        told = sum(name in remark.operators for remark in target.remarks)
        if len(left) > held + told:
            silent[name] = left
    assert silent == {}


@pytest.mark.parametrize("chip", CHIPS)
def test_what_stands_apart_is_in_the_documents(chip):
    files = [FACTS / f"{name}.json" for name in CHIPS.values()]
    if not all(file.is_file() for file in files):
        pytest.skip("shared/reference is not here")
    text = "".join(file.read_text() for file in files)
    assert [part for part in APART if part not in text] == []
