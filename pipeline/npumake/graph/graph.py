"""Graph: an onnx-ir model with methods to read and edit it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from npumake.graph.free_names import Suffixes, free_name
from npumake.graph.fused_parts import forget_parts
from npumake.graph.origin import inherit, origin, originate
from npumake.graph.shapes import inferred

Node: TypeAlias = ir.Node
Value: TypeAlias = ir.Value


class Graph:
    """A model. Edit it only through these methods; `copy` a graph you do not own first.

    As an artifact it is a standard ONNX file, with the same bytes for the same graph.
    """

    suffix: ClassVar[str] = ".onnx"

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self._suffixes: Suffixes = dict.fromkeys(self.values(), 1)
        for node in model.graph.all_nodes():  # includes nodes in branches and loop bodies
            names = (str(node.name), *(str(value.name) for value in node.outputs))
            self._suffixes.update(dict.fromkeys(names, 1))

    # -- reading ---------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(self.model.graph.inputs)

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(self.model.graph.outputs)

    @property
    def opset(self) -> int:
        return self.model.opset_imports[""]

    def nodes(self, *op_types: str) -> list[Node]:
        """The nodes in topological order: all, or ONNX's own operators of these types."""
        if not op_types:
            return list(self.model.graph)
        return [n for n in self.model.graph if n.op_type in op_types and not n.domain]

    def values(self) -> dict[str, Value]:
        """Inputs, initializers and node outputs by name."""
        tensors = {str(v.name): v for v in self.model.graph.inputs}
        tensors.update(self.model.graph.initializers)
        for node in self.model.graph:
            tensors.update({str(v.name): v for v in node.outputs if v.name})
        return tensors

    def find(self, name: str) -> tuple[Node, ...]:
        """The node of this name, else every node that originates from that trained node."""
        own = tuple(node for node in self.nodes() if node.name == name)
        return own or tuple(node for node in self.nodes() if name in origin(node))

    # -- editing ---------------------------------------------------------------------------

    def constant(self, name: str, array: np.ndarray) -> Value:
        """A new initializer; `name` gets a number if it is in use."""
        name = self.free_name(name)
        # Not `ir.tensor`: its type checks would dominate this method.
        tensor = ir.Tensor(np.asarray(array, order="C"), name=name)
        value = ir.Value(
            name=name,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(array.shape),
            const_value=tensor,
        )
        self.model.graph.register_initializer(value)
        return value

    def insert(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        name: str,
        after: Node | None = None,
        *,
        before: Node | None = None,
        **attributes: Any,
    ) -> Value:
        """Inserts a node behind `after`, before `before`, or first if both are None, and returns
        its output `name`. It inherits the neighbor's origin. None omits an attribute."""
        name = self.free_name(name)
        output = ir.Value(name=name)
        present = {key: value for key, value in attributes.items() if value is not None}
        node = ir.node(op_type, inputs, present, outputs=[output], name=name)
        inherit(node, *(near for near in (after or before,) if near is not None))
        nodes = self.model.graph
        if after is not None:
            nodes.insert_after(after, node)
        elif before is not None or len(nodes):
            nodes.insert_before(before or nodes[0], node)
        else:
            nodes.append(node)
        return output

    def expose(self, names: Iterable[str]) -> None:
        """Makes exactly these values the outputs."""
        values = self.values()
        self.model.graph.outputs[:] = [values[name] for name in names]

    def feed_as(self, value: Value, dtype: str, shape: Sequence[int]) -> None:
        """Changes type and shape of an input; its readers still get the old ones."""
        value.type = ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype)))
        value.shape = ir.Shape(shape)

    def add_input(self, name: str, dtype: str, at: int, shape: Sequence[int] = ()) -> Value:
        """A new input at position `at`; `name` gets a number if it is in use."""
        kind = ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype)))
        value = ir.Value(name=self.free_name(name), type=kind, shape=ir.Shape(shape))
        self.model.graph.inputs.insert(at, value)
        return value

    def drop_input(self, value: Value) -> None:
        """Removes an unread input."""
        self.model.graph.inputs.remove(value)

    def feed_past(self, node: Node, value: Value) -> None:
        """The input `value` replaces the output of `node`, with its type and shape."""
        output = node.outputs[0]
        value.type, value.shape = output.type, output.shape
        self.replace_readers(output, value, [use.node for use in tuple(output.uses())])
        self.remove(node)

    def replace_uses(self, old: Value, new: Value) -> None:
        """Readers of `old` read `new`; a graph output keeps its name."""
        self.replace_readers(old, new, [use.node for use in tuple(old.uses())])
        if old.is_graph_output():
            self.replace_output(old, new)

    def replace_readers(self, old: Value, new: Value, nodes: Iterable[Node]) -> None:
        """These nodes read `new` instead of `old`."""
        chosen = set(nodes)
        for use in tuple(old.uses()):
            if use.node in chosen:
                use.node.replace_input_with(use.idx, new)

    def replace_output(self, old: Value, new: Value) -> None:
        """`new` replaces the graph output `old` and takes its public name."""
        outputs = self.model.graph.outputs
        outputs[outputs.index(old)] = new
        name, old.name = old.name, self.free_name(f"{old.name}_float")
        new.name = name
        new.type, new.shape = new.type or old.type, new.shape or old.shape

    def rename(self, value: Value, name: str, holder: Value | None = None) -> None:
        """Renames a node's output; `holder`, which has that name, gets another."""
        if holder is not None:
            holder.name = self.free_name(f"{name}_float")
        value.name = name

    def remove(self, node: Node) -> None:
        """Removes a node whose outputs are unread."""
        self.model.graph.remove(node, safe=True)

    def set_inputs(self, node: Node, inputs: Mapping[int, Value]) -> None:
        """Sets inputs by position; omitted optional ones in between stay empty."""
        for index, value in inputs.items():
            if index >= len(node.inputs):
                node.resize_inputs(index + 1)
            node.replace_input_with(index, value)

    def set_attributes(self, node: Node, **attributes: Any) -> None:
        """Sets attributes; None removes one."""
        for name, value in attributes.items():
            node.attributes.pop(name, None)
            if value is not None:
                node.attributes.add(ir.convenience.convert_attribute(name, value))

    def set_input_shape(self, value: Value, shape: Sequence[int]) -> None:
        """Fixes the shape of an input and drops all inferred shapes."""
        value.shape = ir.Shape(shape)
        for node in self.model.graph:
            for output in node.outputs:
                output.shape = None

    def set_layout(self, value: Value, order: Sequence[int], of: Value) -> None:
        """`value` gets the type of `of`, and its shape with the axes in this order."""
        value.type = of.type
        value.shape = None if of.shape is None else ir.Shape([of.shape[axis] for axis in order])

    def set_type(self, value: Value, dtype: str) -> None:
        value.type = ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype)))

    def forget_shape(self, value: Value, *, and_type: bool = False) -> None:
        """Drops a shape that is no longer valid; `with_shapes` infers it again."""
        value.shape, value.type = None, None if and_type else value.type

    def become(
        self, node: Node, op_type: str, inputs: Sequence[Value | None], **attributes: Any
    ) -> None:
        """Changes the node's operator; its name and first output stay."""
        node.domain, node.op_type = "", op_type
        node.attributes.clear()
        forget_parts(node)
        self.set_attributes(node, **attributes)
        node.resize_inputs(len(inputs))
        for index, value in enumerate(inputs):
            node.replace_input_with(index, value)
        if len(node.outputs) > 1:
            node.resize_outputs(1)

    def absorb(self, node: Node, *others: Node) -> None:
        """`node` now replaces the others: it inherits their origins, and those without readers are
        removed."""
        inherit(node, *others)
        left = {*others}
        while unread := {other for other in left if _is_unread(other)}:
            self.model.graph.remove(unread, safe=True)
            left -= unread

    def bypass(self, node: Node) -> bool:
        """Removes a node that returns its input unchanged. False if the node connects a graph
        input, or another graph output, to a graph output. Its producer inherits the origin."""
        x, y = node.inputs[0], node.outputs[0]
        if x is None:
            return False
        if y.is_graph_output() and (x.producer() is None or x.is_graph_output()):
            return False
        self.replace_uses(y, x)
        if maker := x.producer():
            inherit(maker, node)
        self.remove(node)
        return True

    def drop_unused(self) -> int:
        """Removes nodes and constants that no output depends on; returns their number."""
        dropped = 0
        for node in reversed(self.nodes()):
            if _is_unread(node):
                self.remove(node)
                dropped += 1
        constants = self.model.graph.initializers
        for name, value in tuple(constants.items()):
            if not value.uses() and not value.is_graph_output():
                del constants[name]
                dropped += 1
        return dropped

    def with_shapes(self) -> Graph:
        """The same graph with all shapes and types inferred. Raises GraphError."""
        return Graph(inferred(self.model))

    def copy(self) -> Graph:
        """A copy of nodes and values; the arrays are immutable and shared."""
        return Graph(self.model.clone())

    # -- as an artifact --------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        return ir.to_proto(self.model).SerializeToString(deterministic=True)

    @classmethod
    def from_bytes(cls, data: bytes) -> Graph:
        """Reads the bytes of `to_bytes`; use `parse` for untrusted files."""
        return cls(ir.from_proto(onnx.load_from_string(data)))

    def save(self, path: Path) -> None:
        path.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> Graph:
        return cls.from_bytes(path.read_bytes())

    # -- names -----------------------------------------------------------------------------

    def name_origins(self) -> None:
        """Makes every node without an origin its own origin: this is the trained model."""
        for node in self.model.graph:
            originate(node, origin(node) or [str(node.name)])

    def set_metadata(self, facts: Mapping[str, str]) -> None:
        self.model.metadata_props.update(facts)

    @property
    def metadata(self) -> Mapping[str, str]:
        return self.model.metadata_props

    def free_name(self, name: str) -> str:
        """`name`, with a number appended if a value or node already has it."""
        return free_name(name, self._suffixes)


def _is_unread(node: Node) -> bool:
    return not any(value.uses() or value.is_graph_output() for value in node.outputs)
