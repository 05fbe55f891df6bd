"""A node of a file is judged by what its arithmetic allows, and by no more."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.debug.compiled_file.nodes import NodeJudge
from npumake.debug.compiled_file.runs import CompiledPart
from npumake.engine.exact import ExactSession
from stages.compiled_files import built_cube, program_of

TARGETS = ("tflite", "onnx", "rdk-x5")


@pytest.mark.parametrize("target", TARGETS)
def test_a_float_beside_a_tie_is_quantized_either_way(target):
    made = built_cube(target)
    program = program_of(made)
    step = next(step for step in program.instructions if step.op == "quantize")
    (name,), grid = step.outputs, program.tensors[step.outputs[0]]
    ties = (np.arange(216) % 100 - 50.5).reshape(1, 6, 6, 6) * np.float64(grid.scale)
    feed = {step.inputs[0]: ties.astype(np.float32)}
    names = [n for step in program.instructions for n in step.outputs]
    exact = ExactSession(program, watched=names)
    computed = feed | dict(zip(names, exact.run(names, feed), strict=True))
    judge = NodeJudge(CompiledPart(made.quantized, program, made.target, b""))
    real = feed[step.inputs[0]] / np.float32(grid.scale) + grid.zero_point
    other = (2 * real - computed[name]).round().clip(-128, 127).astype(np.int8)
    assert (other != computed[name]).any()
    assert not [*judge.run(computed, {name: other})]
    (fault,) = judge.run(computed, {name: computed[name] + np.sign(computed[name] - other)})
    assert fault.node == step.name
