"""The types that were asked for arrive in the compiled file, or the build says which do not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Program
from npumake.compilers.backends import built
from npumake.compilers.flatfile import written
from npumake.compilers.read_back import grids_of, types_of
from npumake.compilers.tflite import tflite_model
from npumake.compilers.widths import hold_grids, hold_widths
from npumake.engine.lower import lowered
from npumake.engine.subgraphs import joined
from npumake.errors import StageError
from npumake.graph import Graph, annotations_of, parse_text
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target, target_names
from npumake.targets.target import Target
from stages.compiled_files import Built, built_cube, program_of
from workspaces import few

RNG = np.random.default_rng(0)
FED = [{"x": RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)}]
NAMES = ("a", "c", "z", "s", "m", "p", "k", "g", "f", "y")  # of the nodes; b goes with a
COMPILED = {
    "tflite": "ai_edge_litert",
    "ethos-u55-128": "ethosu",
    "onnx": "onnxruntime",
    "iree-cpu": "iree.compiler",
}
PLANS = 20


def weights(count: int) -> str:
    return "{" + ",".join(f"{w:.3f}" for w in RNG.normal(size=count)) + "}"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return parse_text(
        '<ir_version: 8, opset_import: ["" : 21]> net (float[1,3,8,8] x) '
        "=> (float[1,4] y, float[1,4,8,8] z) "
        f"<float[4,3,3,3] w1 = {weights(108)}, float[4,4,3,3] w2 = {weights(144)}, "
        f"float[8,4] w3 = {weights(32)}> {{"
        "a = Conv <pads = [1,1,1,1]> (x, w1)  b = Relu(a)"
        "c = Conv <pads = [1,1,1,1]> (b, w2)  z = Add(b, c)  s = Sigmoid(z)  m = Mul(z, s)"
        "p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (m)  k = Concat <axis = 1> (p, p)"
        "g = GlobalAveragePool(k)  f = Flatten(g)  y = Gemm(f, w3) }"
    )


def mixed_types(seed: int) -> dict[str, str]:
    wide = np.random.default_rng(seed).integers(2, size=len(NAMES))
    return {name: ("int8", "int16")[is_wide] for name, is_wide in zip(NAMES, wide, strict=True)}


def planned(graph: Graph, target: Target, types: Mapping[str, str]) -> tuple[Graph, Program, str]:
    """The quantized graph, its program, and the notes."""
    symmetric = target.activations.symmetric
    recipe = ranges_by_method(graph, observe(graph, FED), Calibration("max"), symmetric=symmetric)
    asked = Quantization(types=dict(types))
    calibrated = calibrated_with(graph, recipe, target, asked)
    found = quantized(calibrated, target)
    program = lowered(found, target.rounding, target.runnable)
    return found, program, "; ".join(annotations_of(calibrated))


def noted(notes: str) -> int:
    """How many nodes the notes name or count."""
    return len(re.findall(r"\w+ \(\w+\)", notes)) + sum(
        int(more) for more in re.findall(r"and (\d+) more", notes)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", few(target_names(), lambda n: n in {*COMPILED, "rdk-x5", "sl1680"})
)
def test_a_type_that_is_not_had_is_in_the_notes(graph, name):
    target = read_target(name)
    for seed in range(PLANS):
        types = mixed_types(seed)
        _, program, notes = planned(graph, target, types)
        made = {step.name: program.tensors[step.outputs[0]].dtype for step in program.instructions}
        others = [n for n in NAMES if (made[n] == "int16") != (types[n] == "int16")]
        on_cpu = [n for n in others if made[n] == "float32"]
        assert noted(notes) >= len(others) - len(on_cpu), (seed, types, made, notes)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_twenty_plans_arrive_in_the_file(graph, name):
    pytest.importorskip(COMPILED[name], reason="npumake[compilers] is not installed")
    target = read_target(name)
    seeds = range(PLANS) if name in ("tflite", "onnx") else few(range(PLANS), lambda seed: seed < 2)
    for seed in seeds:
        found, program, _ = planned(graph, target, mixed_types(seed))
        data = built(program, found, target, {})
        types = types_of(data, found, target.backend)
        hold_widths(types, program)
        assert types.keys() & program.tensors.keys()


@pytest.mark.parametrize("name", ["tflite", "onnx"])
def test_a_tensor_of_another_type_fails_the_build_by_its_name(graph, name):
    target = read_target(name)
    found, program, _ = planned(graph, target, {"c": "int16"})
    narrow, _, _ = planned(graph, target, {})
    narrowed = lowered(narrow, target.rounding, target.runnable)
    data = built(narrowed, narrow, target, {})
    with pytest.raises(StageError, match="`c_quantized` is int8, planned is int16"):
        hold_widths(types_of(data, found, target.backend), program)


def test_a_bundle_of_another_type_fails_the_build_by_its_name(graph):
    _, program, _ = planned(graph, read_target("rdk-x5"), {})
    data = Bundle("rdk-x5", joined(program), {}).to_bytes()
    types = {name: t.dtype for name, t in Bundle.from_bytes(data).program.tensors.items()}
    hold_widths(types, program)
    with pytest.raises(StageError, match="`c_quantized` is int16, planned is int8"):
        hold_widths(types | {"c_quantized": "int16"}, program)


def test_a_zero_point_of_an_output_is_read_back() -> None:
    """A device reads it from the file, so another one is another number."""
    pytest.importorskip("ai_edge_litert")
    made = built_cube("tflite")
    model = tflite_model(program_of(made), made.quantized)
    assert hold(written(*model), made) is None
    index = model.outputs[0]
    tensor = model.tensors[index]
    for change in ({"zero_point": tensor.zero_point + 1}, {"scale": (2 * tensor.scale[0],)}):
        tensors = [*model.tensors]
        tensors[index] = replace(tensor, **change)
        with pytest.raises(StageError, match=f"the grid of a tensor: `{tensor.name}` is "):
            hold(written(*model._replace(tensors=tensors)), made)


def hold(data: bytes, made: Built) -> None:
    hold_grids(grids_of(data, "tflite"), program_of(made))
