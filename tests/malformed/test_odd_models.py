"""Operators changed in one attribute, constant, input or type: built, or one error. Never a crash.

Seeded mutants of every operator that has a rule (`engine.operators`), for every kind of target.
`NPUMAKE_EVERY=1` tries MANY of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, helper, numpy_helper

from engine.operators import CASES
from malformed.models import project
from malformed.runner import Server

FEW, MANY = 24, 600
TEXTS = [(op, name, text) for op, cases in CASES.items() for name, text in cases.items()]
TARGETS = ("rdk-x5", "ara240", "tflite", "onnx", "sl1680")
WHOLE = (-1, 0, 2, 3, 7, -7, 1 << 31, 1 << 40, -(1 << 62))
REAL = (0.0, -1.0, float("nan"), float("inf"), -1e38)
WORDS = (b"", b"x", b"\xff", b"NOTSET", b"SAME_UPPER", b"linear")
ADDED = (
    *[("group", value) for value in (0, -1, 3)],
    *[("kernel_shape", value) for value in ([5, 5], [0, 0], [3])],
    *[("strides", value) for value in ([0, 0], [-1, 1], [1 << 40] * 2)],
    *[("pads", value) for value in ([1 << 40] * 4, [-5] * 4, [1])],
    *[("axis", value) for value in (99, -99)],
    *[("dilations", [0, 0]), ("perm", [0, 0, 1, 1]), ("keepdims", 7), ("ceil_mode", 9)],
    *[("alpha", float("nan")), ("epsilon", -1.0), ("auto_pad", "SAME_UPPER"), ("auto_pad", "x")],
    *[("output_shape", [1, 1]), ("output_padding", [9, 9]), ("blocksize", 0), ("mode", "x")],
)
SIZES = (0, -5, -1, 1 << 20, 1 << 62, "N", None)
Mutation = Callable[[ModelProto, random.Random], str]


def changed_attribute(model: ModelProto, rng: random.Random) -> str:
    given = [each for node in model.graph.node for each in node.attribute]
    if not given:
        return added_attribute(model, rng)
    chosen = rng.choice(given)
    if chosen.type == AttributeProto.INTS:
        how = rng.randrange(3)
        if how == 0:
            chosen.ints.append(rng.choice(WHOLE))
        elif how == 1 and chosen.ints:
            del chosen.ints[-1]
        elif chosen.ints:
            chosen.ints[rng.randrange(len(chosen.ints))] = rng.choice(WHOLE)
    elif chosen.type == AttributeProto.INT:
        chosen.i = rng.choice(WHOLE)
    elif chosen.type == AttributeProto.FLOAT:
        chosen.f = rng.choice(REAL)
    else:
        chosen.s = rng.choice(WORDS)
    return str(chosen).replace("\n", " ")


def added_attribute(model: ModelProto, rng: random.Random) -> str:
    node, (name, value) = rng.choice(model.graph.node), rng.choice(ADDED)
    for other in [each for each in node.attribute if each.name == name]:
        node.attribute.remove(other)
    node.attribute.append(helper.make_attribute(name, value))
    return f"{node.op_type}.{name} = {value}"


def changed_size(model: ModelProto, rng: random.Random) -> str:
    dims = rng.choice(model.graph.input).type.tensor_type.shape.dim
    size = rng.choice(SIZES)
    if dims:
        dim = rng.choice(dims)
        dim.Clear()
        if isinstance(size, int):
            dim.dim_value = size
        elif size:
            dim.dim_param = size
    return f"an input of size {size}"


def changed_type(model: ModelProto, rng: random.Random) -> str:
    kind = rng.choice((*range(18), 77))
    rng.choice(model.graph.input).type.tensor_type.elem_type = kind
    return f"an input of type {kind}"


def changed_constant(model: ModelProto, rng: random.Random) -> str:
    if not model.graph.initializer:
        return changed_type(model, rng)
    tensor = rng.choice(model.graph.initializer)
    values = numpy_helper.to_array(tensor)
    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        other = rng.choice(
            [
                *(flat, values[None], flat[:0], flat[:1], values[..., None]),
                *(values.astype(kind) for kind in ("float16", "int64", "bool", "float64")),
                *(np.full_like(values, x) for x in (0, -1, *(REAL if values.dtype == "f" else ()))),
            ]
        )
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(other), tensor.name))
    return f"{tensor.name} = {other.dtype}{list(other.shape)} {other.reshape(-1)[:1]}"


def changed_input(model: ModelProto, rng: random.Random) -> str:
    node = rng.choice([node for node in model.graph.node if node.input])
    index = rng.randrange(len(node.input))
    known = (*model.graph.input, *model.graph.initializer)
    node.input[index] = rng.choice(["", "gone", *(each.name for each in known)])
    return f"{node.op_type} reads {list(node.input)}"


def changed_opset(model: ModelProto, rng: random.Random) -> str:
    model.opset_import[0].version = rng.choice((7, 9, 11, 13, 15, 18, 19, 21))
    return f"opset {model.opset_import[0].version}"


MUTATIONS: tuple[Mutation, ...] = (
    *(changed_attribute, changed_attribute, added_attribute, changed_constant, changed_constant),
    *(changed_input, changed_opset, changed_size, changed_type),
)


def mutant(seed: int) -> tuple[str, str, bytes]:
    """What was changed, the target, and the model."""
    rng = random.Random(seed)
    op, name, text = rng.choice(TEXTS)
    model = onnx.parser.parse_model(text)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(model)
    what = rng.choice(MUTATIONS)(model, rng)
    return f"{op}: {name}: {what}", rng.choice(TARGETS), model.SerializeToString()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(MANY if os.environ.get("NPUMAKE_EVERY") else FEW))
def test_an_odd_model_builds_or_is_one_error(seed: int, server: Server, tmp_path: Path) -> None:
    what, target, data = mutant(seed)
    project("m.onnx", data)(tmp_path)
    yaml = tmp_path / "project.yaml"
    yaml.write_text(yaml.read_text().replace("rdk-x5", target))
    found = server.run(tmp_path, ("build",))
    assert "Traceback" not in found.output, (what, target, found.output)
    assert found.code in (0, 2, 3, 4), (what, target, found)
    assert found.output.count("error: ") == (found.code > 0), (what, target, found.output)
