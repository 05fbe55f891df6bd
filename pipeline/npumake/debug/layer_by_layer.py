"""Compares every quantized tensor of a .tflite in LiteRT's reference kernels with our engine.

The file may order axes differently; a tensor is equal if any axis order of its shape makes the
values equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from npumake.bundle.program import Program
from npumake.engine.ort import Feeds
from npumake.engine.reference import ReferenceSession
from npumake.errors import GraphError
from npumake.extras import install_line

CODES = (np.int8, np.int16)


class Layers(NamedTuple):
    """The number of `compared` tensors, and the largest difference of the `wrong` ones by name."""

    compared: int
    wrong: Mapping[str, int]


def beside_litert(program: Program, model: bytes, feeds: Feeds) -> Layers:
    """Compare `model`, the .tflite of `program`, for one set of float feeds. Raises GraphError
    without LiteRT."""
    names = [name for step in program.instructions for name in step.outputs]
    computed = dict(zip(names, ReferenceSession(program).run(names, feeds), strict=True))
    codes = {name: computed.get(_codes_of(program, name), feeds[name]) for name in feeds}
    codes_of = {s.outputs[0]: s.inputs[0] for s in program.instructions if s.op == "dequantize"}
    compared, wrong = 0, dict[str, int]()
    for name, values in litert_tensors(model, codes, feeds).items():
        expected = computed.get(codes_of.get(name, name) if values.dtype in CODES else name)
        if expected is None or expected.dtype != values.dtype or values.dtype not in CODES:
            continue
        compared += 1
        off = min(
            int(np.abs(expected.transpose(order).astype(int) - values).max(initial=0))
            for order in permutations(range(expected.ndim))
            if expected.transpose(order).shape == values.shape
        )
        wrong |= {name: off} if off else {}
    return Layers(compared, wrong)


def litert_tensors(
    model: bytes, codes: Mapping[str, np.ndarray], feeds: Feeds
) -> dict[str, np.ndarray]:
    """Every tensor of the file by name; inputs are quantized or float as the file takes them.
    Raises GraphError without LiteRT."""
    try:
        litert = import_module("ai_edge_litert.interpreter")  # large, and an extra
    except ImportError as error:
        hint = install_line("ai-edge-litert")
        raise GraphError("a .tflite needs LiteRT, which is not installed", None, hint) from error
    interpreter = litert.Interpreter(
        model_content=model,
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        array = (codes if detail["dtype"] in CODES else feeds)[detail["name"]]
        ordered = array if _same_shape(array, detail) else array.transpose(0, 2, 3, 1)
        interpreter.set_tensor(detail["index"], np.array(ordered, order="C"))
    interpreter.invoke()
    return {
        detail["name"]: interpreter.get_tensor(detail["index"])
        for detail in interpreter.get_tensor_details()
        if detail["name"] and detail["dtype"] is not np.object_ and 0 not in detail["shape"]
    }


def _same_shape(values: np.ndarray, detail: Mapping[str, Any]) -> bool:
    return list(values.shape) == list(detail["shape"])


def _codes_of(program: Program, name: str) -> str:
    """The quantized tensor of an input, looking through a Transpose."""
    for step in program.instructions:  # in order
        if name in step.inputs:
            name = step.outputs[0]
            if step.op == "quantize":
                break
    return name
