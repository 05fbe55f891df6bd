"""Weights and biases are read back from the bytes of a compiled file."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.debug.compiled_file.constants import changed_constant
from npumake.debug.compiled_file.runs import CompiledPart
from stages.compiled_files import built, program_of, samples_of, with_weights

NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 8, 6, 6] x) => (float[1, 12] y) {
  [first] a = Conv<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(x, w1)
  [relu] b = Relu(a)
  [pool] p = GlobalAveragePool(b)
  [flat] f = Flatten(p)
  [last] y = Gemm<transB=1>(f, w2)
}"""


def part_for(chip: str) -> CompiledPart:
    graph = with_weights(NET, {"w1": (8, 8, 3, 3), "w2": (12, 8)})
    made = built(graph, chip, samples_of(graph))
    return CompiledPart(made.quantized, program_of(made), made.target, made.file.data)


def changed(data: bytes, values: np.ndarray, place: int) -> bytes:
    """Another byte in the first layout of the values that the file holds."""
    orders = ((0, 1, 2, 3), (0, 2, 3, 1), (2, 3, 1, 0)) if values.ndim == 4 else ((0, 1), (1, 0))
    layouts = [np.ascontiguousarray(values.transpose(order)).tobytes() for order in orders]
    start = next(data.index(layout) for layout in layouts if layout in data)
    other = bytearray(data)
    other[start + place] ^= 0x40
    return bytes(other)


@pytest.mark.parametrize("chip", ["tflite", "onnx"])
@pytest.mark.parametrize("layer", ["first", "last"])
def test_a_changed_byte_names_its_node_though_nothing_is_run(chip: str, layer: str) -> None:
    part = part_for(chip)
    assert changed_constant(part) is None
    step = next(step for step in part.program.instructions if step.name == layer)
    weight = step.constants["weight"]
    for place in (0, weight.size // 2, weight.size - 1):
        fault = changed_constant(part._replace(data=changed(part.data, weight, place)))
        assert fault is not None
        assert (fault.node, fault.error[:2]) == (layer, "1 ")
