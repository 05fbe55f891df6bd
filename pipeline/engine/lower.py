"""A quantized ONNX graph becomes an integer program.

In Q/DQ form an integer operator is written as: dequantize its inputs, compute in float, perhaps
clamp, quantize the result. Read backwards that is one instruction on integers. What does not
have that shape stays float and is an `onnx` instruction: a model of one node, for the CPU.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pipeline.bundle.program import Instruction, Program, Tensor
from pipeline.digest import Json
from pipeline.engine.fusion import absorbed, bounds, is_clamp
from pipeline.engine.rules import CONSTANT_OPERANDS, PLACES, RULES, has_kernel
from pipeline.engine.site import Operand, Site, Step, Weights
from pipeline.engine.twice import rules_of
from pipeline.errors import GraphError
from pipeline.graph import (
    Graph,
    Node,
    Value,
    array,
    attribute,
    is_float,
    is_kept_float,
    only_consumer,
    origin,
    part,
    reads,
    shape,
)
from pipeline.graph import producer as producer_of
from pipeline.kernels import affine

Q, DQ = "QuantizeLinear", "DequantizeLinear"


def lowered(graph: Graph, rounding: str, operators: Collection[str] | None = None) -> Program:
    """The program of a graph in Q/DQ form, for a unit that runs these operators, or all (None).

    An operator that the unit lacks, and a node kept float, stay so though their neighbours put
    all around them on grids.
    Raises GraphError for Q/DQ that cannot be computed in integers.
    """
    lowering = _Lowering(graph, rounding, RULES.keys() if operators is None else operators)
    for node in graph.nodes():
        lowering.visit(node)
    return lowering.program()


class _Lowering:
    """One walk over the nodes, in order. `tensors` grows with `instructions`."""

    def __init__(self, graph: Graph, rounding: str, operators: Collection[str]) -> None:
        self.graph = graph
        self.rounding = rounding
        self.operators = operators
        self.tensors: dict[str, Tensor] = {}
        self.instructions: list[Instruction] = []
        self.done: set[Node] = set()  # computed along with an earlier node
        for value in graph.inputs:
            self._float(value)

    def visit(self, node: Node) -> None:
        if node in self.done:
            return
        if node.op_type == Q:
            self._requantize(node) if _dequantizer(node.inputs[0]) else self._quantize(node)
        elif node.op_type == DQ:
            self._dequantize_where_read_as_float(node)
        elif quantizer := self._integer_result(node):
            self._lower(node, quantizer)
        elif self._makes_places(node):
            self._find(node)
        else:
            self._leave_to_the_cpu(node)

    def program(self) -> Program:
        return Program(
            tuple(str(value.name) for value in self.graph.inputs),
            tuple(str(value.name) for value in self.graph.outputs),
            self.tensors,
            tuple(self.instructions),
        )

    # -- integer instructions --------------------------------------------------------------

    def _integer_result(self, node: Node) -> Node | None:
        """The Q that ends the node's integer computation; None when it has none."""
        if not self._runs(node):
            return None
        reader = only_consumer((absorbed(node) or node).outputs[0])
        return reader if reader is not None and reader.op_type == Q else None

    def _runs(self, node: Node) -> bool:
        if node.op_type not in self.operators or is_kept_float(node):
            return False
        return has_kernel(node) and _on_grids(node)

    def _makes_places(self, node: Node) -> bool:
        return node.op_type in PLACES and self._runs(node)

    def _find(self, node: Node) -> None:
        """Places among codes are whole numbers: nothing quantizes them."""
        maker = _dequantizer(node.inputs[0])
        assert maker is not None
        operand, made = self._operand(maker.inputs[0]), node.outputs[0]
        output = self._float(made)
        step = RULES[node.op_type].lower(Site(node, (operand,), (), output))
        self._emit(node, step, (operand.name,), made, output)
        self.done.add(node)

    def _lower(self, node: Node, quantizer: Node) -> None:
        clamp, rule = absorbed(node), rules_of(self.rounding)[node.op_type]
        operands, weights = [], []
        for index, value in enumerate(node.inputs):
            maker = _dequantizer(value)
            if maker is None:
                continue
            if array(maker.inputs[0]) is None:
                operands.append(self._operand(maker.inputs[0]))
            elif index in rule.weights:
                weights.append(_weights(maker))
            else:
                operands.append(self._constant(maker))
        output = _grid(quantizer, quantizer.outputs[0])
        step = rule.lower(Site(node, tuple(operands), tuple(weights), output))
        names = tuple(operand.name for operand in operands)
        step.attributes.update(self._clamped(clamp or node, output) | step.attributes)
        self._emit(node, step, names, quantizer.outputs[0], output, clamp)
        self.done.update({quantizer} if clamp is None else {clamp, quantizer})

    def _clamped(self, node: Node, grid: Tensor) -> dict[str, Json]:
        """The clamp in codes of the output grid: rounding is monotonic, so it may come first."""
        limits, real = np.iinfo(grid.dtype), bounds(node if is_clamp(node) else None)
        low = limits.min if real.low is None else _code(real.low, grid)
        high = limits.max if real.high is None else _code(real.high, grid)
        return {"low": int(low), "high": int(high), "rounding": self.rounding}

    def _requantize(self, node: Node) -> None:
        """From one grid straight to another."""
        maker = _dequantizer(node.inputs[0])
        assert maker is not None
        operand = self._operand(maker.inputs[0])
        output = _grid(node, node.outputs[0])
        step = RULES["Relu"].lower(Site(node, (operand,), (), output))
        step.attributes.update(self._clamped(node, output))
        self._emit(node, step, (operand.name,), node.outputs[0], output)

    def _operand(self, value: Value | None) -> Operand:
        assert value is not None
        name = str(value.name)
        if name not in self.tensors:
            raise GraphError(f"`{name}` is read on a grid but nothing quantizes it")
        return Operand(name, self.tensors[name])

    def _constant(self, maker: Node) -> Operand:
        """A constant that is an operand like any activation, not a weight."""
        value = maker.inputs[0]
        values = array(value)
        assert value is not None
        assert values is not None
        grid = _grid(maker, value)
        if str(value.name) not in self.tensors:
            self._emit(maker, Step("constant", {"values": values}, {}), (), value, grid)
        return Operand(str(value.name), grid)

    # -- at the borders --------------------------------------------------------------------

    def _quantize(self, node: Node) -> None:
        source = str(node.inputs[0].name) if node.inputs[0] is not None else ""
        grid = _grid(node, node.outputs[0])
        self._emit(node, Step("quantize", {}, {}), (source,), node.outputs[0], grid)

    def _dequantize_where_read_as_float(self, node: Node) -> None:
        value = node.outputs[0]
        readers = [use.node for use in value.uses()]
        if not value.is_graph_output() and all(self._is_integer(reader) for reader in readers):
            return
        if array(node.inputs[0]) is not None:
            self._leave_to_the_cpu(node)
        else:
            source = str(node.inputs[0].name) if node.inputs[0] is not None else ""
            self._emit(node, Step("dequantize", {}, {}), (source,), value, self._float(value))

    def _is_integer(self, node: Node) -> bool:
        if node.op_type == Q or node in self.done or self._makes_places(node):
            return True
        return self._integer_result(node) is not None

    def _leave_to_the_cpu(self, node: Node) -> None:
        model = np.frombuffer(part(self.graph, [node], node.outputs).to_bytes(), np.uint8)
        read = tuple(str(value.name) for value in reads(node) if array(value) is None)
        for value in node.outputs:
            self._float(value)
        made = tuple(str(value.name) for value in node.outputs)
        self.instructions.append(
            Instruction("onnx", str(node.name), read, made, {"model": model}, origin=origin(node))
        )

    def _float(self, value: Value) -> Tensor:
        tensor = Tensor(shape(value), str(value.dtype.numpy()) if value.dtype else "float32")
        return self.tensors.setdefault(str(value.name), tensor)

    def _emit(
        self,
        node: Node,
        step: Step,
        inputs: tuple[str, ...],
        made: Value,
        grid: Tensor,
        clamp: Node | None = None,
    ) -> None:
        self.tensors[str(made.name)] = grid
        self.instructions.append(
            Instruction(
                step.op,
                str(node.name),
                inputs,
                (str(made.name),),
                step.constants,
                step.attributes,
                origin(node) if clamp is None else (*origin(node), *origin(clamp)),
            )
        )


def _dequantizer(value: Value | None) -> Node | None:
    maker = None if value is None else producer_of(value)
    return maker if maker is not None and maker.op_type == DQ else None


def _on_grids(node: Node) -> bool:
    """Whether all that the node computes with has a grid. A parameter, such as a bound of a Clip
    or the scales of a Resize, needs none."""
    weights = RULES[node.op_type].weights
    for index, value in enumerate(node.inputs):
        computed_with = index == 0 or index in weights or node.op_type in CONSTANT_OPERANDS
        if not is_float(value) or (array(value) is not None and not computed_with):
            continue
        if _dequantizer(value) is None:
            return False
    return True


def _parameters(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of a Q or DQ node. Raises GraphError when they are computed."""
    scale = array(node.inputs[1])
    if scale is None:
        raise GraphError(f"the scale of `{node.name}` is computed; only constants can be compiled")
    zero_point = array(node.inputs[2]) if len(node.inputs) > 2 else None
    return scale, np.zeros_like(scale, np.uint8) if zero_point is None else zero_point


def _grid(node: Node, value: Value) -> Tensor:
    """The per-tensor grid a Q or DQ node puts `value` on."""
    scale, zero_point = _parameters(node)
    if scale.size != 1:
        raise GraphError(f"`{node.name}` is per channel; an activation has one scale")
    dtype = str(value.dtype.numpy()) if value.dtype else str(zero_point.dtype)
    return Tensor(shape(value), dtype, float(scale.reshape(-1)[0]), int(zero_point.reshape(-1)[0]))


def _weights(maker: Node) -> Weights:
    """The integers behind a DQ of a constant; a zero point, per channel or not, taken off."""
    values = array(maker.inputs[0])
    assert values is not None
    scale, zero_point = _parameters(maker)
    if not zero_point.any():
        return Weights(values, scale)
    axis = attribute(maker, "axis", 1)
    per_axis = [-1 if index == axis else 1 for index in range(values.ndim)]
    offset = zero_point.astype(np.int16).reshape(per_axis if zero_point.size > 1 else ())
    return Weights(values.astype(np.int16) - offset, scale)


def _code(real: float, grid: Tensor) -> int:
    """A real bound as QuantizeLinear would write it, saturation included."""
    limits = np.iinfo(grid.dtype)
    scale = np.float32(grid.scale or 1.0)
    bound = np.asarray(real, np.float32)
    return int(affine.quantize(bound, scale, grid.zero_point, limits.min, limits.max))
