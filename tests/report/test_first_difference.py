"""The first difference of two artifacts is a tensor, in every format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from frontends.tflite_writer import Op, T, constant, written
from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.report.first_difference import PARTS, first_difference
from npumake.stages.stage import every_stage

SUFFIXES = sorted({stage.suffix for stage in every_stage().values()})


def graph(
    folder: Path, name: str, first: float = 1.0, second: float = 2.0, op: str = "Add"
) -> Path:
    tensors = [
        numpy_helper.from_array(np.full((2, 3), value, np.float32), tensor)
        for tensor, value in (("a", first), ("b", second))
    ]
    nodes = [
        helper.make_node("Mul", ["x", "a"], ["m"], "scaled"),
        helper.make_node(op, ["m", "b"], ["y"], "moved"),
    ]
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, [2, 3]) for each in "xy")
    body = helper.make_graph(nodes, "g", [x], [y], tensors)
    file = folder / f"{name}.onnx"
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, file)
    return file


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"second": 3.0}, "tensor `b` of `moved`: 6 of 6 values, first at [0, 0]: 2.0 → 3.0"),
        ({"first": 0.0, "second": 3.0}, "tensor `a` of `scaled`: 6 of 6 values"),
        ({"op": "Sub"}, "node `moved`: Add → Sub"),
    ],
)
def test_of_graphs_it_is_the_first_in_order(tmp_path: Path, change, what) -> None:
    found = first_difference(graph(tmp_path, "a"), graph(tmp_path, "b", **change))
    assert found.startswith(what)


def bundle(folder: Path, name: str, **changes: object) -> Path:
    weight = np.arange(4, dtype=np.int8)
    step = Instruction("conv", "c1", ("x",), ("y",), {"weight": weight}, {"pads": [0, 0]})
    tensors = {"x": Tensor((1, 4), "int8", 0.5), "y": Tensor((1, 4), "int8", 0.25)}
    program = Program(("x",), ("y",), tensors, (step,))
    made = Bundle("rdk-x5", program, {"chain": {"quantized": "1"}})
    match changes:
        case {"weight": value}:
            steps = (replace(step, constants={"weight": value}),)
            made = replace(made, program=replace(program, instructions=steps))
        case {"scale": value}:
            other = {**tensors, "y": replace(tensors["y"], scale=value)}
            made = replace(made, program=replace(program, tensors=other))
        case {"chain": value}:
            made = replace(made, provenance={"chain": value})
    file = folder / f"{name}.hybrid"
    made.save(file)
    return file


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"weight": np.array([0, 1, 9, 3], np.int8)}, "tensor `c1.weight`: 1 of 4 values, first"),
        ({"weight": np.zeros(4, np.int16)}, "tensor `c1.weight`: int8[4] → int16[4]"),
        ({"scale": 0.5}, "tensor `y`: "),
        ({"chain": {"quantized": "2"}}, "`provenance.chain.quantized`: 1 → 2"),
    ],
)
def test_of_bundles_it_is_a_constant_a_grid_or_a_link(tmp_path: Path, change, what) -> None:
    found = first_difference(bundle(tmp_path, "a"), bundle(tmp_path, "b", **change))
    assert found.startswith(what)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (constant([1.0, 3.0]), "tensor `t1`: 1 of 2 values, first at [1]: 2.0 → 3.0"),
        (constant([1, 2], "int8", scale=[0.5], zero_point=[0]), "tensor `t1`: float32"),
    ],
)
def test_of_tflite_files_it_is_a_tensor(tmp_path: Path, change: T, what: str) -> None:
    for name, values in (("a", constant([1.0, 2.0])), ("b", change)):
        tensors = [T((2,)), values, T((2,))]
        data = written(tensors, [Op("ADD", [0, 1], [2])], [0], [2])
        tmp_path.joinpath(f"{name}.tflite").write_bytes(data)
    found = first_difference(tmp_path / "a.tflite", tmp_path / "b.tflite")
    assert found.startswith(what)


def test_of_arrays_and_documents_it_is_the_first_name(tmp_path: Path) -> None:
    for name, last in (("a", 1.0), ("b", np.nan)):
        np.savez(tmp_path / f"{name}.npz", x=np.ones(2), y=np.array([np.nan, last]))
        text = json.dumps({"ranges": {"conv": [0, last]}}).replace("NaN", "2")
        tmp_path.joinpath(f"{name}.json").write_text(text)
    arrays = first_difference(tmp_path / "a.npz", tmp_path / "b.npz")
    assert arrays == "tensor `y`: 1 of 2 values, first at [1]: 1.0 → nan"
    documents = first_difference(tmp_path / "a.json", tmp_path / "b.json")
    assert documents == "`ranges.conv.1`: 1.0 → 2"


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".vmfb", ".unknown"])
def test_what_cannot_be_read_is_compared_by_its_bytes(tmp_path: Path, suffix: str) -> None:
    before, after = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    before.write_bytes(b"abcd")
    after.write_bytes(b"abxd")
    assert first_difference(before, after) == "byte 2 of 4"
    after.write_bytes(b"ab")
    assert first_difference(before, after) == "4 → 2 bytes"
    after.write_bytes(before.read_bytes())
    assert first_difference(before, after) == ""


def test_every_stage_before_the_compiled_file_has_its_parts() -> None:
    stages = every_stage()
    names = [name for name in stages if name in ("samples", "recipe") or "quantized" in name]
    assert {stages[name].suffix for name in names} <= PARTS.keys()
