"""Re-runs only the nodes downstream of a changed tensor.

    behind[t]   the nodes that depend on tensor t, as a model
    cut[t]      the inputs of this model, t included: computed once, and stored

Neighboring tensors share much of their cuts. Tensors whose cuts fit into BUDGET_BYTES form a
group: the whole graph runs once for the cuts of the group, then each tensor's own model. So memory
does not grow with the graph. Changing each of n tensors costs half the graph per tensor on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from npumake.custom.operators import Operators
from npumake.engine.ort import Feeds
from npumake.engine.parallel import side_by_side
from npumake.engine.partial.cut import Downstream, downstream_parts
from npumake.engine.partial.opened import of_serialized
from npumake.engine.partial.part import Values, rerun, run_in_order
from npumake.graph import Graph, SerializedGraph

BUDGET_BYTES = 256 << 20
# The name of a tensor and its values → its new values.
Change = Callable[[str, np.ndarray], np.ndarray]
Outputs = list[list[np.ndarray]]


def changed(
    graph: Graph,
    names: Sequence[str],
    change: Change,
    feeds: Sequence[Feeds],
    operators: Operators,
    budget: int = BUDGET_BYTES,
) -> Iterator[tuple[str, Outputs]]:
    """(name, outputs) for each named tensor that a node reads or that is an output: the graph's
    outputs for `feeds` after `change` of that tensor."""
    written = SerializedGraph(graph)
    for group in _together(written, downstream_parts(written, names), len(feeds), budget):
        values_of_samples = _values_at_cuts(written, group, feeds, operators)
        outputs_of = partial(
            _outputs, written, change=change, samples=values_of_samples, operators=operators
        )
        yield from zip((part.name for part in group), side_by_side(outputs_of, group), strict=True)


def change_groups(
    graph: Graph, names: Sequence[str], samples: int, budget: int = BUDGET_BYTES
) -> list[list[str]]:
    """The names in the groups of `changed`; of one group it makes one again."""
    written = SerializedGraph(graph)
    groups = _together(written, downstream_parts(written, names), samples, budget)
    return [[part.name for part in group] for group in groups]


def _together(
    written: SerializedGraph, candidates: Sequence[Downstream], samples: int, budget: int
) -> Iterator[list[Downstream]]:
    """Consecutive parts in groups whose cuts fit into the budget; at least one part each."""
    group: list[Downstream] = []
    cuts: set[str] = set()
    for part in candidates:
        wider = cuts.union(part.cut)
        if group and 4 * samples * sum(map(written.size, wider)) > budget:
            yield group
            group, wider = [], set(part.cut)
        group, cuts = [*group, part], wider
    if group:
        yield group


def _values_at_cuts(
    written: SerializedGraph,
    group: Sequence[Downstream],
    feeds: Sequence[Feeds],
    operators: Operators,
) -> list[Values]:
    """For each sample, the inputs of the parts and the outputs of the unchanged graph."""
    watched = dict.fromkeys([*written.outputs, *(name for part in group for name in part.cut)])
    outputs = [name for name in watched if name not in written.inputs]
    whole = of_serialized(written, written.pieces, outputs, operators)
    return list(side_by_side(lambda feed: run_in_order([whole], feed), feeds))


def _outputs(
    written: SerializedGraph,
    part: Downstream,
    change: Change,
    samples: Sequence[Values],
    operators: Operators,
) -> Outputs:
    inside = {name for piece in part.pieces for name in piece.makes}
    outputs = [name for name in written.outputs if name in inside]
    behind = [of_serialized(written, part.pieces, outputs, operators)]

    def outputs_of(values: Values) -> list[np.ndarray]:
        new = rerun(behind, {part.name: change(part.name, values[part.name])}, values)
        return [new.get(name, values[name]) for name in written.outputs]

    return [*map(outputs_of, samples)]
