"""Sensitivity: the output error when one node alone is quantized and the rest stays in float.

    node          its weights, its output, and the model inputs it reads
    weight        one constant
    activation    one tensor

Results of probes are cached, so an interrupted run resumes where it stopped. Several threads access
the cache at once, because syncing a result to disk may take longer than computing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples
from npumake.debug.calibration_nodes import (
    CalibrationNode,
    by_owner,
    calibration_nodes,
    whole,
    without,
)
from npumake.debug.metrics import metric
from npumake.debug.probing import Probing, Sums
from npumake.engine.parallel import side_by_side
from npumake.errors import ProjectError, did_you_mean
from npumake.graph import Graph, producer
from npumake.graph.qdq import is_qdq
from npumake.progress import track

NodeType = Literal["node", "weight", "activation"]
MAX_OPEN_FILES = 8  # read or written at once
SUFFIXES = ("", "_quantized", "_HzCalibration")  # of calibration nodes, after the tensor's name


class Question(NamedTuple):
    """The active calibration nodes `places`, and the node whose result is the `output`."""

    places: tuple[str, ...]
    output: str | None


class ProbeCache(Protocol):
    """Results by question; accessed by several threads."""

    def get(self, question: Question, /) -> Sums | None: ...

    def __setitem__(self, question: Question, sums: Sums, /) -> None: ...


@dataclass(frozen=True)
class ModelUnderTest:
    """A calibrated graph with its samples. Ranges are checked on all samples; probes run the first
    `data_num` of them, by default all, and `cache` holds results of these only."""

    calibrated: Graph
    samples: Samples
    operators: Operators = NO_OPERATORS
    cache: ProbeCache = field(default_factory=dict[Question, Sums])
    at_once: int | None = None
    data_num: int | None = None

    @property
    def probed(self) -> Samples:
        return Samples(self.samples.names[: self.data_num], self.samples.read)

    @property
    def cache_threads(self) -> int:
        """Threads that access the cache: one is enough for a cache in memory."""
        return 1 if isinstance(self.cache, dict) else MAX_OPEN_FILES

    @cached_property
    def nodes(self) -> tuple[CalibrationNode, ...]:
        return calibration_nodes(self.calibrated)

    @cached_property
    def real(self) -> Graph:
        """The model in float. Callers do not edit it."""
        return without(self.calibrated)


def sensitivities(
    model: ModelUnderTest,
    groups: Mapping[str, Sequence[str]],
    output: str | None = None,
) -> dict[str, Sums]:
    """The agreement of each output with the float model, for each group of calibration nodes
    quantized alone. Raises GraphError, and ProjectError for an unknown output."""
    questions = {name: Question(tuple(sorted(group)), output) for name, group in groups.items()}
    cached = side_by_side(model.cache.get, questions.values(), model.cache_threads)
    sums_by_name = dict(zip(questions, cached, strict=True))
    open_ = [name for name, sums in sums_by_name.items() if sums is None]
    if open_:
        graph, nodes = model.calibrated, model.nodes
        if output is not None:
            graph = _up_to(model.calibrated, output)
            nodes = calibration_nodes(graph)
        by_name = {node.name: node for node in nodes}
        probes = [[by_name[n] for n in groups[name] if n in by_name] for name in open_]
        probing = Probing(graph, probes, model.probed, model.operators, nodes)

        def cache(result: tuple[int, Sums]) -> tuple[str, Sums]:
            name, sums = open_[result[0]], result[1]
            model.cache[questions[name]] = sums
            return name, sums

        results = track(probing.sums(model.at_once), "probes", len(open_))
        sums_by_name |= side_by_side(cache, results, model.cache_threads)
    return {name: sums for name, sums in sums_by_name.items() if sums is not None}


def groups_of(model: ModelUnderTest, node_type: NodeType) -> dict[str, tuple[str, ...]]:
    """Name -> its calibration nodes, for every node of the type, in graph order."""
    if node_type != "node":
        return {node.name: (node.name,) for node in model.nodes if node.kind == node_type}
    owned = by_owner(model.nodes)
    return {str(n.name): owned[str(n.name)] for n in model.calibrated.nodes() if n.name in owned}


def named(model: ModelUnderTest, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Name -> its calibration nodes, for the given names of regular nodes, nodes of the trained
    model, calibration nodes or tensors. Raises ProjectError for an unknown name."""
    owned, nodes = by_owner(model.nodes), model.nodes
    by_name: dict[str, tuple[str, ...]] = {
        node.tensor + end: (node.name,) for end in SUFFIXES for node in nodes
    }
    by_name |= {node.name: (node.name,) for node in nodes} | owned
    return {name: by_name.get(name) or _of_trained(model, owned, name) for name in names}


def ranked(sums: Mapping[str, Sums], by: str) -> list[str]:
    """Names by loss, worst first, ties in graph order. Raises ProjectError."""
    chosen = metric(by)
    return sorted(sums, key=lambda name: -chosen.loss(chosen.figure(sums[name])))


def _of_trained(
    model: ModelUnderTest, owned: Mapping[str, tuple[str, ...]], name: str
) -> tuple[str, ...]:
    nodes = (whole(node) for node in model.calibrated.find(name) if not is_qdq(node))
    names = [item for node in dict.fromkeys(nodes) for item in owned.get(str(node.name), ())]
    if not names:
        candidates = [*owned, *(item.name for item in model.nodes)]
        raise ProjectError(f"nothing is quantized at `{name}`", hint=did_you_mean(name, candidates))
    return tuple(dict.fromkeys(names))


def _up_to(calibrated: Graph, output: str) -> Graph:
    """The graph cut behind the quantized output of this node. Raises ProjectError."""
    values = calibrated.values()
    tensors = {
        str(whole(maker).name): place.real
        for place in calibration_nodes(calibrated)
        if (maker := producer(values[place.tensor])) is not None
    }
    names = [str(node.name) for node in calibrated.find(output) if node.name in tensors]
    if not names:
        hint = did_you_mean(output, tensors)
        raise ProjectError(f"no node `{output}` with a quantized output", hint=hint)
    graph = calibrated.copy()
    graph.expose([tensors[names[-1]]])
    graph.drop_unused()
    return graph
