"""Float functions that TensorFlow Lite lacks, in operators that it has.

HardSigmoid  min(max(alpha x + beta, 0), 1)        Reciprocal  1 / x
Softplus     log(1 + exp(x))                       Softsign    x / (1 + |x|)
Mish         x tanh(softplus(x))                   Ceil        -floor(-x)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers.flatfile import Fields
from npumake.compilers.tflite_builder import Order, TFLiteBuilder, plain
from npumake.graph import Node, attribute


class FloatStep(NamedTuple):
    """A chain of operators for one node; each output has the shape and type of the node's."""

    draft: TFLiteBuilder
    step: Instruction
    order: Order

    def emit(self, kind: str, inputs: Sequence[int], options: Fields | None = None) -> int:
        called = f"{self.step.outputs[0]}_{kind}_{len(self.draft.tensors)}"
        index = self.draft.hidden(self.step.outputs[0], self.order, called)
        self.draft.draw(kind, inputs, [index], options)
        return index

    def number(self, value: float) -> int:
        return self.draft.constant(f"{self.step.name}_number", np.full((1,), value, np.float32))

    def give(self, kind: str, inputs: Sequence[int]) -> None:
        """Adds the last operator, which produces the node's output."""
        self.draft.draw(kind, inputs, [self.draft.make(self.step.outputs[0], self.order)])


def _line(draft: TFLiteBuilder, step: Instruction) -> tuple[FloatStep, int]:
    order = draft.order(step.inputs[0])
    return FloatStep(draft, step, order), draft.read(step.inputs[0], order)


def hard_sigmoid(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    line, x = _line(draft, step)
    scaled = line.emit("MUL", [x, line.number(attribute(node, "alpha", 0.2))])
    moved = line.emit("ADD", [scaled, line.number(attribute(node, "beta", 0.5))])
    line.give("MINIMUM", [line.emit("MAXIMUM", [moved, line.number(0.0)]), line.number(1.0)])


def reciprocal(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    line, x = _line(draft, step)
    line.give("DIV", [line.number(1.0), x])


def softplus(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    line, x = _line(draft, step)
    line.give("LOG", [line.emit("ADD", [line.emit("EXP", [x]), line.number(1.0)])])


def softsign(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    line, x = _line(draft, step)
    line.give("DIV", [x, line.emit("ADD", [line.emit("ABS", [x]), line.number(1.0)])])


def mish(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    line, x = _line(draft, step)
    plus = line.emit("LOG", [line.emit("ADD", [line.emit("EXP", [x]), line.number(1.0)])])
    line.give("MUL", [x, line.emit("TANH", [plus])])


def ceil(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """LiteRT's reference kernels have no CEIL."""
    line, x = _line(draft, step)
    line.give("NEG", [line.emit("FLOOR", [line.emit("NEG", [x])])])


def clip(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """A bound has rank 0, or onnxruntime's shape [1]."""
    line, x = _line(draft, step)
    for kind, bound in zip(("MAXIMUM", "MINIMUM"), node.inputs[1:], strict=False):
        if bound is not None:
            name = str(bound.name)
            x = line.emit(kind, [x, draft.read(name, plain(len(draft.grid(name).shape)))])
    draft.hold(step.outputs[0], line.order, x)
