"""The rows in which a vendor's tool lists a model: some nodes have several, others none.

    Slices of one Split           one row, Split
    Conv + Add                    the row of the Conv, which adds the other operand to its sum
    data movement of sums, NHWC outputs             none
    a Transpose on the CPU in front of a Conv       none
    Softmax                       its six steps
    a / b                         1 / b and the product; by a constant only the product
    Gemm                          a Conv, and a Reshape on the CPU behind the unit
    a vector times a constant     a Reshape on the CPU, and a Gemm
    an input of a Concat with another grid          a row of its own, before the Concat's

Figures come from the graph; rows without a tensor in the graph have none. The rules follow logs of
the tool (npumake.targets.form).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from npumake.engine.functions import FUNCTIONS
from npumake.engine.fusion import absorbed, result
from npumake.graph import (
    Graph,
    Node,
    Value,
    array,
    attribute,
    is_float,
    only_consumer,
    origin,
    producer,
    shape,
    written_for,
)
from npumake.targets.form import Form
from npumake.targets.onnx_limits import is_caffe

PREPROCESS = ("HZ_PREPROCESS_FOR_", "HzSQuantizedPreprocess")
REQUANTIZE = "HzRequantize"
SOFTMAX = "_FROM_QUANTIZED_SOFTMAX"
SOFTMAX_STEPS = ("ReduceMax", "Sub", "Exp", "ReduceSum", "Reciprocal", "Mul")  # of a Softmax
PROBABILITY_THRESHOLD = 1.0  # of the tool's probabilities
EXP_THRESHOLDS = {
    "int8": 5.64418,
    "int16": 11.0903,
}  # input of an exponential step: 16 ln 2
CHANNELS_LAST = (0, 2, 3, 1)
VIEWS = ("Flatten", "Reshape")


@dataclass(frozen=True)
class Entry:
    """A row: name, type, and the `node` of the graph that it describes. `makes`: it has the node's
    output, `reads`: it has the node's inputs. `threshold` overrides the node's; `cpu`: the row is
    on the CPU although the node is not."""

    name: str
    type: str
    node: str
    makes: bool = True
    reads: bool = True
    threshold: float | None = None
    cpu: bool = False


@dataclass(frozen=True)
class Listing:
    """The data that decide the rows, all by name: nodes on the unit, those that produce or move
    int32 sums, those in int16, and per Concat its requantized inputs."""

    graph: Graph
    form: Form
    unit: Collection[str]
    sums: Collection[str] = frozenset()
    wide: Collection[str] = frozenset()
    requantized: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def entries(self) -> tuple[Entry, ...]:
        clamps = {absorbed(node) for node in self.graph.nodes()}
        nodes = (node for node in self.graph.nodes() if node not in clamps)
        return tuple(entry for node in nodes for entry in self._of(node))

    @cached_property
    def makers(self) -> Mapping[str, Node]:
        """By tensor, the first node whose result it is."""
        return {str(result(node).name): node for node in reversed(self.graph.nodes())}

    @cached_property
    def order(self) -> Mapping[Node, int]:
        return {node: index for index, node in enumerate(self.graph.nodes())}

    def runs(self, node: Node | None) -> bool:
        return node is not None and str(node.name) in self.unit

    def type_of(self, node: Node) -> str:
        form, op_type = self.form, node.op_type
        if op_type in form.by_constant and any(map(_is_factor, node.inputs)):
            return form.by_constant[op_type]
        if op_type not in form.types and op_type in FUNCTIONS:
            is_wide = str(node.name) in self.wide and form.wide_table
            return form.wide_table if is_wide else form.table or op_type
        return form.types.get(op_type, op_type)

    def _of(self, node: Node) -> Iterator[Entry]:
        if _has_no_row(self, node):
            return
        if not self.runs(node):
            clamp = absorbed(node)
            types = node.op_type if clamp is None else f"{node.op_type}+{clamp.op_type}"
            yield Entry(str(node.name), types, str(node.name))
        elif not origin(node):
            yield from _preprocessing(self, node)
        else:
            special = SPECIAL.get(written_for(node) or node.op_type, _plain)
            yield from special(self, node)


def _is_factor(value: Value | None) -> bool:
    """Whether the value is a constant scalar, or one per channel."""
    factor = array(value) if value is not None and is_float(value) else None
    if factor is None:
        return False
    return factor.size == 1 or (factor.ndim >= 3 and factor.size == factor.shape[-3])


def _plain(listing: Listing, node: Node) -> Iterator[Entry]:
    yield Entry(str(node.name), listing.type_of(node), str(node.name))


def _has_no_row(listing: Listing, node: Node) -> bool:
    if listing.runs(node):
        return bool(origin(node)) and _is_passive(listing, node)
    readers = [use.node for value in node.outputs for use in value.uses()]
    if node.op_type == "Transpose":
        return bool(readers) and all(r.op_type == "Conv" and listing.runs(r) for r in readers)
    return node.op_type in VIEWS and _is_vector_gemm(listing, _maker(node.inputs[0]))


def _maker(value: Value | None) -> Node | None:
    return None if value is None else producer(value)


def _is_passive(listing: Listing, node: Node) -> bool:
    """Whether the unit's node moves sums, transposes an output to NHWC, drops the channel of a
    Conv, or flattens for a Gemm."""
    if str(node.name) in listing.sums and node.op_type not in listing.form.types:
        return True
    readers = [use.node for value in node.outputs for use in value.uses()]
    if node.op_type == "Transpose" and attribute(node, "perm") == CHANNELS_LAST:
        return not any(map(listing.runs, readers))
    if node.op_type in VIEWS and _drops_channel(node):
        return True
    feeds = bool(readers) and all(r.op_type == "Gemm" and listing.runs(r) for r in readers)
    return node.op_type in VIEWS and feeds


def _drops_channel(node: Node) -> bool:
    """Whether the node drops the only channel of a Conv, and changes nothing else."""
    maker, before, after = _maker(node.inputs[0]), node.inputs[0], node.outputs[0]
    if maker is None or maker.op_type != "Conv" or before is None or after.shape is None:
        return False
    batch, channels, *rest = shape(before)
    return channels == 1 and shape(after) == (batch, *rest)


def _is_vector_gemm(listing: Listing, node: Node | None) -> bool:
    """Whether the node multiplies a vector, as a matrix of one row, by a constant."""
    if node is None or node.op_type != "MatMul" or not listing.form.vector_gemm:
        return False
    row = _maker(node.inputs[0])
    is_row = row is not None and row.op_type in VIEWS and origin(row) == origin(node)
    return is_row and array(node.inputs[1]) is not None and listing.runs(node)


def _matmul(listing: Listing, node: Node) -> Iterator[Entry]:
    if _is_vector_gemm(listing, node):
        name = f"{node.name}{listing.form.vector_gemm}"
        yield Entry(name, listing.form.types["Gemm"], str(node.name))
    else:
        yield from _plain(listing, node)


def _preprocessing(listing: Listing, node: Node) -> Iterator[Entry]:
    """One row for all preprocessing: that of the last node in front of the trained model."""
    readers = [use.node for use in result(node).uses()]
    source = _input(node)
    if source is not None and any(origin(reader) for reader in readers):
        prefix, type = PREPROCESS
        yield Entry(f"{prefix}{source.name}", type, str(node.name))


def _input(node: Node) -> Value | None:
    """The model input that the node depends on."""
    value: Value | None = node.inputs[0]
    while value is not None and not value.is_graph_input():
        maker = producer(value)
        value = None if maker is None else maker.inputs[0]
    return value


def _add(listing: Listing, node: Node) -> Iterator[Entry]:
    """No row if a Conv adds it to its sum."""
    if not any(_adds(listing, node, value) for value in node.inputs):
        prefix = listing.form.unit_conv
        type = listing.form.types["Conv"] if prefix else listing.type_of(node)
        yield Entry(f"{prefix}{node.name}", type, str(node.name))


def _adds(listing: Listing, node: Node, value: Value | None) -> bool:
    maker = None if value is None else producer(value)
    if maker is None or maker.op_type != "Conv" or not listing.runs(maker):
        return False
    return only_consumer(maker.outputs[0]) is node


def _concat(listing: Listing, node: Node) -> Iterator[Entry]:
    for tensor in listing.requantized.get(str(node.name), ()):
        about, name = listing.makers.get(tensor, node), f"{tensor}{listing.form.requantize}"
        yield Entry(name, REQUANTIZE, str(about.name), makes=False, reads=False)
    yield from _plain(listing, node)


def _split(listing: Listing, node: Node) -> Iterator[Entry]:
    """One row for all Slices of a Split: that of the first."""
    assert node.inputs[0] is not None
    beside = (use.node for use in node.inputs[0].uses())
    slices = [row for row in beside if origin(row) == origin(node) and written_for(row)]
    if min(slices, key=listing.order.__getitem__) is node:
        yield Entry(origin(node)[0], "Split", str(node.name))


def _div(listing: Listing, node: Node) -> Iterator[Entry]:
    name, about = origin(node)[0] if written_for(node) else str(node.name), str(node.name)
    if node.op_type == "Mul":  # by the reciprocal of a constant
        yield Entry(f"{name}_mul", listing.type_of(node), about)
        return
    table = listing.form.table or "Reciprocal"
    yield Entry(f"{name}_reciprocal", table, about, makes=False)
    yield Entry(f"{name}_mul", listing.form.types.get("Mul", "Mul"), about)


def _softmax(listing: Listing, node: Node) -> Iterator[Entry]:
    form, name = listing.form, str(node.name)
    is_wide = name in listing.wide
    tables = form.wide_table if is_wide and form.wide_table else form.table
    thresholds = {
        "Exp": EXP_THRESHOLDS["int16" if is_wide else "int8"],
        "ReduceSum": PROBABILITY_THRESHOLD,
        "Mul": PROBABILITY_THRESHOLD,
    }
    for step in SOFTMAX_STEPS:
        type = tables if step in ("Exp", "Reciprocal") and tables else form.types.get(step, step)
        threshold_of_step, row_name = thresholds.get(step), f"{name}_{step.lower()}{SOFTMAX}"
        yield Entry(
            row_name, type, name, makes=step == SOFTMAX_STEPS[-1], threshold=threshold_of_step
        )


def _gemm(listing: Listing, node: Node) -> Iterator[Entry]:
    yield from _plain(listing, node)
    readers = [use.node for use in result(node).uses()]
    form = listing.form
    suffix = (is_caffe(listing.graph) and form.caffe_reshape) or form.gemm_reshape
    if suffix and not any(map(listing.runs, readers)):
        yield Entry(f"{node.name}{suffix}", "Reshape", str(node.name), cpu=True)


SPECIAL: Mapping[str, Callable[[Listing, Node], Iterator[Entry]]] = {
    "Add": _add,
    "Concat": _concat,
    "Div": _div,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Softmax": _softmax,
    "Split": _split,
}
