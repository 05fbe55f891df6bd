"""Lowers a quantized ONNX graph to an integer program.

In Q/DQ form an integer operator is: dequantize the inputs, compute in float, optionally clamp,
quantize the result. Each such pattern becomes one instruction on integers. A node outside this
pattern stays float as an `onnx` instruction: a one-node model for the CPU. A layer that outputs its
int32 sums has no quantizer: it becomes one instruction, and its dequantization another.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.clamping import clamped
from npumake.engine.fusion import absorbed
from npumake.engine.grids import (
    dequantizer,
    has_wide_weight,
    on_grids,
    tensor_on_grid,
    weights_of,
    wide_bias,
)
from npumake.engine.int32_sums import (
    MOVING,
    SUMMING,
    channel_scales,
    dequantizing,
    moved_scales,
    sums_of,
)
from npumake.engine.quantized_node import (
    LoweredStep,
    Operand,
    QuantizedConstant,
    QuantizedNode,
    factor,
    instruction,
    operand_names,
    source_name,
)
from npumake.engine.rules import PLACES, RULES
from npumake.engine.tflite_rules import computes, rules_of
from npumake.errors import GraphError
from npumake.graph import (
    Graph,
    Node,
    Value,
    array,
    border_rounding,
    hands_out_sums,
    is_guard,
    is_kept_float,
    origin,
    part,
    reads,
    runs_on_unit,
    shape,
)
from npumake.graph.qdq import first_dequantizer, is_dequantize, is_quantize, sole_quantizer


def lowered(graph: Graph, rounding: str, operators: Collection[str] | None = None) -> Program:
    """The program of a Q/DQ graph for a unit with these operators (None: all).

    An operator that the unit lacks, and a node marked as float, stay float even between Q/DQ
    neighbors. Raises GraphError for Q/DQ that integers cannot compute.
    """
    lowering = _Lowering(graph, rounding, RULES.keys() if operators is None else operators)
    for node in graph.nodes():
        lowering.visit(node)
    return lowering.program()


class _Lowering:
    """One pass over the nodes in order; `tensors` grows with `instructions`."""

    def __init__(self, graph: Graph, rounding: str, operators: Collection[str]) -> None:
        self.graph = graph
        self.rounding = rounding
        rule = border_rounding(graph)
        self._rounded = {"rounding": rule} if rule != "half_even" else {}
        self.operators = operators
        self.tensors: dict[str, Tensor] = {}
        self.instructions: list[Instruction] = []
        self.lowered_nodes: set[Node] = set()  # computed together with an earlier node
        self.sums: dict[
            Value | None, tuple[str, np.ndarray]
        ] = {}  # by real tensor: name of the sums, their scale
        for value in graph.inputs:
            self._feed(value)

    def visit(self, node: Node) -> None:
        if node in self.lowered_nodes:
            return
        if is_quantize(node):
            self._requantize(node) if dequantizer(node.inputs[0]) else self._quantize(node)
        elif is_dequantize(node):
            self._dequantize_where_read_as_float(node)
        elif is_guard(node) and self._is_integer(node):
            self.lowered_nodes.add(node)
        elif quantizer := self._integer_result(node):
            self._lower(node, quantizer)
        elif self._makes_sums(node) or self._moves_sums(node):
            self._sum(node)
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
        """The Q that ends the node's integer computation, else None."""
        if not self._runs(node):
            return None
        return sole_quantizer((absorbed(node) or node).outputs[0])

    def _runs(self, node: Node) -> bool:
        lacks = node.op_type not in self.operators and not runs_on_unit(node)
        if lacks or is_kept_float(node):
            return False
        return computes(node, self.rounding) and on_grids(node)

    def _makes_places(self, node: Node) -> bool:
        return node.op_type in PLACES and self._runs(node)

    def _find(self, node: Node) -> None:
        """Lowers an operator that returns indices: these are integers and need no Q."""
        maker = dequantizer(node.inputs[0])
        assert maker is not None
        operand, value = self._operand(maker.inputs[0]), node.outputs[0]
        output = self._float(value)
        step = RULES[node.op_type].lower(QuantizedNode(node, (operand,), (), output))
        self._emit(node, step, (operand.name,), str(value.name), output)
        self.lowered_nodes.add(node)

    def _makes_sums(self, node: Node) -> bool:
        return hands_out_sums(node) and node.op_type in SUMMING and self._runs(node)

    def _moves_sums(self, node: Node) -> bool:
        return hands_out_sums(node) and node.op_type == MOVING and node.inputs[0] in self.sums

    def _sum(self, node: Node) -> None:
        """Emits the sums, or their Transpose, and the instruction that dequantizes them."""
        codes, moved = self.sums.get(node.inputs[0], ("", None))
        operand = [Operand(codes, self.tensors[codes])] if codes else []
        value, tensor = node.outputs[0], sums_of(node)
        site = (
            QuantizedNode(node, tuple(operand), (), tensor) if codes else self._site(node, tensor)
        )
        step = RULES[node.op_type].lower(site)
        step.constants.update(factor(1.0))
        step.attributes.update(clamped(node, tensor, self.rounding))
        scale = channel_scales(node, site) if moved is None else moved_scales(moved, step)
        codes, name = (self._free(f"{node.name}_{message}") for message in ("sums", "dequantized"))
        self._emit(node, step, operand_names(site), codes, tensor)
        self.sums[value] = (codes, scale)
        self._float(value)
        self.instructions.append(dequantizing(node, name, codes, scale))

    def _free(self, name: str) -> str:
        """`name`, lengthened until no value or node of the graph has it."""
        while name in self._names:
            name += "_"
        return name

    @cached_property
    def _names(self) -> set[str]:
        return {*self.graph.values(), *(str(node.name) for node in self.graph.nodes())}

    def _lower(self, node: Node, quantizer: Node) -> None:
        clamp, rule = absorbed(node), rules_of(self.rounding)[node.op_type]
        site = self._site(node, tensor_on_grid(quantizer, quantizer.outputs[0]))
        step = rule.lower(site)
        step.attributes.update(clamped(clamp or node, site.output, self.rounding) | step.attributes)
        name = str(quantizer.outputs[0].name)
        self._emit(node, step, operand_names(site), name, site.output, clamp)
        self.lowered_nodes.update({quantizer} if clamp is None else {clamp, quantizer})

    def _site(self, node: Node, output: Tensor) -> QuantizedNode:
        operands, weights = list[Operand](), list[QuantizedConstant]()
        biases = RULES[node.op_type].weights[1:] if has_wide_weight(node) else ()
        for index, value in enumerate(node.inputs):
            maker = dequantizer(value)
            if value is not None and index in biases:
                weights.append(wide_bias(value, operands[0].grid, weights[0]))
            elif maker is None:
                continue
            elif array(maker.inputs[0]) is None:
                operands.append(self._operand(maker.inputs[0]))
            elif index in rules_of(self.rounding)[node.op_type].weights:
                weights.append(weights_of(maker))
            else:
                operands.append(self._constant(maker))
        return QuantizedNode(node, tuple(operands), tuple(weights), output)

    def _requantize(self, node: Node) -> None:
        """From one grid directly to another."""
        maker = dequantizer(node.inputs[0])
        assert maker is not None
        operand = self._operand(maker.inputs[0])
        output = tensor_on_grid(node, node.outputs[0])
        step = RULES["Relu"].lower(QuantizedNode(node, (operand,), (), output))
        step.attributes.update(clamped(node, output, self.rounding))
        self._emit(node, step, (operand.name,), str(node.outputs[0].name), output)

    def _operand(self, value: Value | None) -> Operand:
        assert value is not None
        name = str(value.name)
        if name not in self.tensors:
            raise GraphError(f"`{name}` is read as codes, but no node quantizes it")
        return Operand(name, self.tensors[name])

    def _constant(self, maker: Node) -> Operand:
        """A constant that is an operand like an activation, not a weight."""
        value = maker.inputs[0]
        values = array(value)
        assert value is not None
        assert values is not None
        grid = tensor_on_grid(maker, value)
        if str(value.name) not in self.tensors:
            step = LoweredStep("constant", {"values": values}, {})
            self._emit(maker, step, (), str(value.name), grid)
        return Operand(str(value.name), grid)

    # -- at the borders --------------------------------------------------------------------

    def _quantize(self, node: Node) -> None:
        step, grid = (
            LoweredStep("quantize", {}, self._rounded),
            tensor_on_grid(node, node.outputs[0]),
        )
        self._emit(node, step, (source_name(node),), str(node.outputs[0].name), grid)

    def _dequantize_where_read_as_float(self, node: Node) -> None:
        value = node.outputs[0]
        readers = [use.node for use in value.uses()]
        if not value.is_graph_output() and all(self._is_integer(reader) for reader in readers):
            return
        if array(node.inputs[0]) is not None:
            self._leave_to_the_cpu(node)
        else:
            step, grid = LoweredStep("dequantize", {}, {}), self._float(value)
            self._emit(node, step, (source_name(node),), str(value.name), grid)

    def _is_integer(self, node: Node) -> bool:
        if is_quantize(node) or node in self.lowered_nodes:
            return True
        if self._makes_places(node) or self._makes_sums(node):
            return True
        if is_guard(node):
            return all(self._integer_result(use.node) for use in node.outputs[0].uses())
        return self._integer_result(node) is not None

    def _leave_to_the_cpu(self, node: Node) -> None:
        model = np.frombuffer(part(self.graph, [node], node.outputs).to_bytes(), np.uint8)
        read = tuple(str(value.name) for value in reads(node) if array(value) is None)
        for value in node.outputs:
            self._float(value)
        outputs = tuple(str(value.name) for value in node.outputs)
        name, constants = str(node.name), {"model": model}
        step = Instruction("onnx", name, read, outputs, constants, origin=origin(node))
        self.instructions.append(step)

    def _feed(self, value: Value) -> None:
        """An input of the model: float, or codes on the grid of the DQ that reads it."""
        reader = first_dequantizer(value)
        if reader is None:
            self._float(value)
        else:
            self.tensors[str(value.name)] = tensor_on_grid(reader, value)

    def _float(self, value: Value) -> Tensor:
        tensor = Tensor(shape(value), str(value.dtype.numpy()) if value.dtype else "float32")
        return self.tensors.setdefault(str(value.name), tensor)

    def _emit(
        self,
        node: Node,
        step: LoweredStep,
        inputs: tuple[str, ...],
        output: str,
        grid: Tensor,
        clamp: Node | None = None,
    ) -> None:
        self.tensors[output] = grid
        origins = origin(node) if clamp is None else (*origin(node), *origin(clamp))
        self.instructions.append(instruction(str(node.name), step, inputs, output, origins))
