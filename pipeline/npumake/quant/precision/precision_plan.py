"""The precision plan: the unit of each node, and the type of each tensor at each use.

Types are int8, which means the target's 8 bits, and int16. Nodes in float16 or float32 use no
integers. Types that the target lacks are dropped with a note.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from npumake.detection.notes import coefficient_outputs
from npumake.engine.fusion import absorbed, result
from npumake.engine.rules import has_kernel
from npumake.engine.tflite_rules import computes
from npumake.graph import Graph, Node, Value, is_float, is_foreign
from npumake.project.sections import Quantization
from npumake.quant.precision.divisor_ranges import fragile_divisions
from npumake.quant.precision.int32_outputs import with_int32_outputs
from npumake.quant.precision.placement import MOVE_OPERATORS, on_chip, source_tensor
from npumake.quant.precision.type_propagation import OUT, WIDE, TensorUse, operands
from npumake.quant.precision.type_requests import RequestedTypes, requested_types
from npumake.quant.precision.uneven_concat import uneven_joins
from npumake.targets.limits import beyond
from npumake.targets.parts import runs
from npumake.targets.target import Target

NARROW = "int8"
REASON_LIMIT = "CPU, beyond a limit"  # `npumake check` names the limit for each node
REASON_DIVISION = "CPU, so that an epsilon below one code keeps a division from zero"
MAX_NAMES_IN_NOTE = 5  # the note counts the others


@dataclass(frozen=True)
class PrecisionPlan:
    """Types and places of a model's nodes.

    `chip` are all nodes on the chip. `nodes` are the same in order, without absorbed clamps and
    moves of sums.
    """

    chip: Collection[Node]
    nodes: Sequence[Node]
    reads: Mapping[tuple[Node, int], str]  # the type of every operand of `nodes`
    makes: Mapping[Value, str]  # of their outputs without int32 sums, and of quantized model inputs
    sums: Collection[Node]  # nodes with int32 outputs: layers, and the moves behind them
    half: Sequence[Node]  # float16 nodes
    float_nodes: Sequence[Node]  # float, though the chip could run them
    notes: Sequence[str]

    @property
    def unit(self) -> set[Node]:
        """All nodes that the unit runs, in integers or float16, clamps included."""
        clamps = {clamp for node in self.half if (clamp := absorbed(node)) is not None}
        return {*self.chip, *self.half, *clamps}

    @property
    def is_wide(self) -> bool:
        return WIDE in {*self.reads.values(), *self.makes.values()}


NO_STEPS: Mapping[str, float] = {}


def plan_precision(
    graph: Graph, quantization: Quantization, target: Target, steps: Mapping[str, float] = NO_STEPS
) -> PrecisionPlan:
    """The plan for the float `graph`; `steps` are the known 8-bit scales of its observed tensors.
    Raises ProjectError for a name that selects nothing."""
    requests = requested_types(graph, quantization)
    halves = [node for node in requests.of_type("float16") if is_float(result(node))]
    half = _float16_nodes(halves, requests, target)
    divisions = _cpu_divisions(graph, requests, target, steps)
    off = {*requests.cpu, *half, *requests.of_type("float32"), *divisions}
    required = _required_nodes(graph, quantization, requests, target)
    chip = on_chip(graph, target, off, required)
    concats = _cpu_concats(graph, quantization, requests, steps, target, chip)
    chip = on_chip(graph, target, off.union(concats), required) if concats else chip
    nodes = _computed(graph, chip)
    types, sums = with_int32_outputs(graph, nodes, chip, required, requests.by_use, target)
    moved, nodes = sums.moved(target), [node for node in nodes if node not in sums.moves]
    chip = chip - sums.moves | moved
    makers = [node for node in nodes if is_float(result(node)) and node not in sums.layers]
    type_at = partial(_type_at, types.wide)
    reasons: Mapping[str, Collection[Node | Value]] = {
        f"8 bits, {target.name} has no float16": [n for n in halves if n in chip],
        f"8 bits, {target.name} has no int16 for this operator": types.refused,
        "8 bits, no node reads int16 of an input of the model": _unread(requests, types.wide),
        f"int16 throughout, {target.name} has one type around a node": types.overruled,
        REASON_DIVISION: divisions,
        "CPU, so that each part of an output keeps its own 8 bits": concats,
        **_cpu_reasons(graph, target, requests, {*chip, *off}),
    }
    return PrecisionPlan(
        chip,
        nodes,
        {(node, index): type_at((node, index)) for node in nodes for index in operands(node)},
        {v: type_at(v) for v in graph.inputs if v not in requests.float_inputs}
        | {result(n): type_at((n, OUT)) for n in makers},
        {*sums.layers, *moved},
        half,
        [node for node in graph.nodes() if node not in chip and _could_run(node, target)],
        (*requests.notes, *_notes(reasons)),
    )


def _unread(requests: RequestedTypes, wide: Collection[TensorUse]) -> list[Value]:
    return [value for value in requests.wide_inputs if value not in wide]


def _wide_on_cpu(requests: RequestedTypes) -> list[Node]:
    uses = requests.by_use.wide
    wide = {use[0] for use in uses if isinstance(use, tuple)} & requests.typed
    return [node for node in requests.cpu if node in wide]


def _float16_nodes(nodes: Sequence[Node], requests: RequestedTypes, target: Target) -> list[Node]:
    """Of the nodes with a float16 request, those that the target runs so."""
    if not target.float16:
        return []
    return [node for node in nodes if node not in requests.cpu and not is_foreign(node)]


def _required_nodes(
    graph: Graph, quantization: Quantization, requests: RequestedTypes, target: Target
) -> set[Node]:
    """The nodes that the chip must run if it can. A type for an operator requests its unit."""
    full = graph.nodes(*MOVE_OPERATORS) if quantization.mode == "full" else ()
    return {*requests.npu, *full, *(n for n in requests.typed if n.op_type in target.on_request)}


def _type_at(wide: Collection[TensorUse], spot: TensorUse) -> str:
    return WIDE if spot in wide else NARROW


def _computed(graph: Graph, chip: set[Node]) -> list[Node]:
    """The nodes of the chip in order, without absorbed clamps."""
    clamps = {absorbed(node) for node in graph.nodes()}
    return [node for node in graph.nodes() if node in chip and node not in clamps]


def _leaves_wide(target: Target) -> bool:
    """Whether one grid has codes enough for each part of an output."""
    return target.form is not None and target.form.leaving == WIDE


def _cpu_concats(
    graph: Graph,
    quantization: Quantization,
    requests: RequestedTypes,
    steps: Mapping[str, float],
    target: Target,
    chip: Collection[Node],
) -> list[Node]:
    """The Concats of outputs that go to the CPU, unless a rule forbids it."""
    if quantization.outputs not in (None, "float32") or _leaves_wide(target):
        return []
    requested = {
        *requests.npu,
        *(spot[0] for spot in requests.by_use.wide if isinstance(spot, tuple)),
    }
    free = (node for node in uneven_joins(graph, steps) if node in chip and node not in requested)
    return [node for node in free if target.converter is None or not _is_one_part(graph, node)]


def _is_one_part(graph: Graph, join: Node) -> bool:
    """Whether it only joins mask coefficients, which the converters output as one tensor."""
    names = coefficient_outputs(graph)
    return any(str(v.name) in names and source_tensor(v) is join.outputs[0] for v in graph.outputs)


def _cpu_divisions(
    graph: Graph, requests: RequestedTypes, target: Target, steps: Mapping[str, float]
) -> list[Node]:
    """The fragile divisions that the chip could run and no rule requests there."""
    divisions = fragile_divisions(graph, steps) if steps else []
    return [node for node in divisions if node not in requests.npu and _could_run(node, target)]


def _could_run(node: Node, target: Target) -> bool:
    return computes(node, target.rounding) and runs(node, target, True)


def _cpu_reasons(
    graph: Graph, target: Target, requests: RequestedTypes, elsewhere: Collection[Node]
) -> dict[str, Collection[Node]]:
    """The nodes that the CPU runs because the chip cannot; those in `elsewhere` are settled."""
    left = [node for node in graph.nodes() if node not in elsewhere]
    requested = requests.typed.union(requests.npu)
    beyond_limits = [node for node in left if _exceeds_limit(node, target, node in requested)]
    named = [node for node in left if node in requested and node not in beyond_limits]
    lacking = [n for n in named if n in requests.npu or not runs(n, target, True)]
    without_arithmetic = [node for node in left if _lacks_arithmetic(node, target)]
    return {
        "for the NPU, though a rule for the CPU names it as well": requests.on_both,
        "CPU, in float, though a rule wants int16": _wide_on_cpu(requests),
        f"CPU in float, {target.name} has no 8 bits of this form": without_arithmetic,
        f"{REASON_LIMIT} of {target.name} that `npumake check` names": beyond_limits,
        f"CPU, {target.name} does not run this operator": lacking,
    }


def _exceeds_limit(node: Node, target: Target, is_requested: bool) -> bool:
    """Whether only a documented limit keeps the node off the unit."""
    is_run = runs(node, target, is_requested) and computes(node, target.rounding)
    return is_run and is_float(result(node)) and bool(beyond(node, target))


def _lacks_arithmetic(node: Node, target: Target) -> bool:
    """Whether the node has an integer kernel, but not in the target's own arithmetic."""
    has_integers = runs(node, target) and has_kernel(node) and not computes(node, target.rounding)
    return has_integers and is_float(result(node))


def _notes(reasons: Mapping[str, Collection[Node | Value]]) -> Iterator[str]:
    for reason, parts in reasons.items():
        names = [
            f"{part.name} ({part.op_type})" if isinstance(part, Node) else str(part.name)
            for part in parts
        ]
        suffix = (
            f" and {len(names) - MAX_NAMES_IN_NOTE} more" if len(names) > MAX_NAMES_IN_NOTE else ""
        )
        if names:
            yield f"{reason}: {', '.join(names[:MAX_NAMES_IN_NOTE])}{suffix}"
