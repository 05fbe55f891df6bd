"""Operators at places of a network: in front, behind a layer, beside another reader, before one.

Every case is a network of its own; several are one model, each with its input and its output, for
compilers that take a second for any file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import onnx

IMAGES = [(1, 3, 6, 6), (1, 4, 5, 7), (1, 8, 1, 9), (1, 5, 8, 1), (1, 1, 4, 4)]
ROWS = [(1, 4, 8), (1, 7, 5), (1, 1, 16)]
PLACES = ["directly", "behind a layer", "behind a ReLU", "with two readers", "before a layer"]
HEADER = '<ir_version: 9, opset_import: ["" : 20]> agraph'


class Case(NamedTuple):
    """`text` makes {y} of {x}; the sizes of that are in {shape}, whole numbers in ints(...)."""

    text: str
    shape: tuple[int, ...]
    place: str


def ints(*values: int) -> str:
    return f"Constant <value_ints: ints = [{', '.join(map(str, values))}]> ()"


def _layer(x: str, y: str, size: int, made: int, is_image: bool, seed: int) -> str:
    """A Conv 1x1, or a MatMul, from `size` to `made` channels."""
    rng = np.random.default_rng(seed)
    dims = (made, size, 1, 1) if is_image else (size, made)
    weights = ",".join(f"{w:.3f}" for w in rng.normal(size=made * size) / np.sqrt(size))
    bias = ",".join(f"{b:.3f}" for b in rng.normal(size=made) * 0.3)
    constants = (
        f"{y}_w = Constant <value: tensor = float[{','.join(map(str, dims))}] {{{weights}}}> () "
        f"{y}_b = Constant <value: tensor = float[{made}] {{{bias}}}> () "
    )
    if is_image:
        return f"{constants} {y} = Conv({x}, {y}_w, {y}_b) "
    return f"{constants} {y}_m = MatMul({x}, {y}_w) {y} = Add({y}_m, {y}_b) "


def _nodes(name: str, case: Case, behind: tuple[int, ...] = ()) -> str:
    """From x_`name` to y_`name`; a layer before which the operator stands needs what it makes."""
    is_image = len(case.shape) == 4
    text, read = "", f"x_{name}"
    if case.place in ("behind a layer", "behind a ReLU"):
        size = case.shape[1] if is_image else case.shape[-1]
        text += _layer(read, f"l_{name}", size, size, is_image, len(text))
        read = f"l_{name}"
    if case.place == "behind a ReLU":
        text += f"r_{name} = Relu({read}) "
        read = f"r_{name}"
    if case.place == "with two readers":
        text += f"o_{name} = Sigmoid({read}) "
    is_before = case.place == "before a layer" and len(behind) > 1
    made = f"m_{name}" if is_before else f"y_{name}"
    text += case.text.format(x=read, y=made, n=name) + " "
    if is_before:
        deep = len(behind) == 4
        text += _layer(made, f"y_{name}", behind[1] if deep else behind[-1], 3, deep, 7)
    return text


def model_of(cases: Mapping[str, Case]) -> onnx.ModelProto:
    """All of them, their outputs typed: y_NAME, and o_NAME of those with two readers."""
    plain = _parsed(cases, {})
    shapes = {v.name: v.type.tensor_type for v in plain.graph.output}
    behind = {
        name: tuple(dim.dim_value for dim in shapes[f"y_{name}"].shape.dim)
        for name in cases
        if shapes[f"y_{name}"].elem_type == onnx.TensorProto.FLOAT
    }
    return _parsed(cases, behind)


def _parsed(cases: Mapping[str, Case], behind: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    inputs = ", ".join(f"float[{','.join(map(str, c.shape))}] x_{n}" for n, c in cases.items())
    names = [f"y_{name}" for name in cases]
    names += [f"o_{name}" for name, case in cases.items() if case.place == "with two readers"]
    outputs = ", ".join(f"float {name}" for name in names)
    body = "\n".join(_nodes(name, case, behind.get(name, ())) for name, case in cases.items())
    model = onnx.parser.parse_model(f"{HEADER} ({inputs}) => ({outputs}) {{ {body} }}")
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    for output in model.graph.output:
        output.ClearField("type")
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def at_places(
    text: str, shapes: Iterable[tuple[int, ...]], places: Iterable[str] = tuple(PLACES)
) -> dict[str, Case]:
    made = [Case(text, shape, place) for shape in shapes for place in places]
    return {f"c{number}": case for number, case in enumerate(made)}
