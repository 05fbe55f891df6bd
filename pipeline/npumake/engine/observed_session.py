"""Runs a float graph and writes inner tensors into one buffer.

For large outputs it runs onnxruntime's own rewriting of the model: nodes reordered, convolution
outputs left in their blocked layout, and the graph cut into segments. A segment's outputs are read
while they are in the cache, and the next segment overwrites them. The bits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators, require
from npumake.engine.float_session import FloatSession, MixedSession, is_plain
from npumake.engine.ort import Feeds, OrtSession, rewritten
from npumake.engine.port import Port
from npumake.errors import GraphError
from npumake.graph import (
    REORDERED,
    ExtraOutput,
    Graph,
    reordering,
    short_paths_first,
    with_outputs,
)
from npumake.graph.segments import Segment, Type

# The reordered run gains up to 1 ns per value. It costs milliseconds, and 4 ns per byte to rewrite
# the weights.
MIN_VALUES = 1 << 25
VALUES_PER_BYTE = 8
SEGMENT_ELEMENTS = 1 << 20  # elements of a segment: 4 MB, which two threads keep in the cache

# Runs the model, and yields the buffer after each segment.
Write = Callable[[Feeds], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Watching:
    """A session that exposes float32 tensors of static shape."""

    segments: tuple[tuple[str, ...], ...]  # output names, per segment
    blocks: Mapping[str, int]  # channels per block of an output in blocked layout
    # From the offset of each output in a buffer. The result serves one thread at a time.
    writer: Callable[[Mapping[str, int], np.ndarray], Write]


class Opened(NamedTuple):
    """A segment with its session."""

    session: OrtSession
    outputs: tuple[str, ...]
    outgoing: tuple[str, ...] = ()
    incoming: tuple[str, ...] = ()


def watching(
    graph: Graph,
    groups: Sequence[Sequence[str | ExtraOutput]],
    operators: Operators = NO_OPERATORS,
    values: int = 0,
) -> Watching:
    """A session that outputs these groups; the tensors of one group come from one segment.

    `values` is the number of output elements over all samples; it decides how much setup pays off.
    Raises GraphError.
    """
    model = with_outputs(graph, [output for group in groups for output in group])
    if not is_plain(graph):
        require(graph, operators)
        return _whole(MixedSession(Graph.from_bytes(model), operators))
    if values >= MIN_VALUES + VALUES_PER_BYTE * len(model) and _is_flat(graph):
        try:
            return _in_haste(model, [[str(output) for output in group] for group in groups])
        except GraphError:  # onnxruntime accepts the model with fewer fusions
            pass
    return _whole(OrtSession(model))


def _is_flat(graph: Graph) -> bool:
    return all(node.graph is graph.model.graph for node in graph.model.graph.all_nodes())


def _whole(session: FloatSession) -> Watching:
    names = session.output_names
    if isinstance(session, MixedSession):
        return Watching((names,), {}, partial(_copying, session))
    return Watching((names,), {}, partial(_writing, [Opened(session, names)]))


def _copying(session: MixedSession, starts: Mapping[str, int], buffer: np.ndarray) -> Write:
    def write(feeds: Feeds) -> Iterator[np.ndarray]:
        for name, output in zip(session.output_names, session.run(None, feeds), strict=True):
            buffer[starts[name] : starts[name] + output.size] = output.ravel()
        yield buffer

    return write


def _in_haste(model: bytes, together: Sequence[Sequence[str]]) -> Watching:
    """A session of onnxruntime's rewritten model with side branches first. onnxruntime would
    compute the longest path first, and read the other outputs after they left the cache. The bits
    are the same."""
    block = _channels_of_a_block()
    parts, blocked = short_paths_first(rewritten(model), block, together, SEGMENT_ELEMENTS)
    opened = _opened(parts)
    segments = tuple(segment.outputs for segment in opened)
    return Watching(segments, dict.fromkeys(blocked, block), partial(_writing, opened))


def _opened(segments: Iterable[Segment]) -> list[Opened]:
    """The sessions. Raises GraphError, also for an outgoing tensor without a static shape."""
    types: dict[str, Type] = {}
    result = []
    for segment in segments:
        session = OrtSession(segment.to_bytes(types), fusion="done")
        types |= {
            port.name: _type(port) for port in session.outputs if port.name in segment.outgoing
        }
        result.append(Opened(session, segment.outputs, segment.outgoing, segment.incoming))
    return result


def _type(port: Port) -> Type:
    sizes = [size for size in port.shape if isinstance(size, int)]
    if len(sizes) < len(port.shape):
        raise GraphError(f"`{port.name}` has no static shape")
    try:
        return port.dtype, sizes
    except TypeError as error:
        raise GraphError(f"`{port.name}` is not an array: {port.type}") from error


def _writing(segments: Sequence[Opened], starts: Mapping[str, int], buffer: np.ndarray) -> Write:
    carry: dict[str, np.ndarray] = {}
    steps = []
    for session, outputs, outgoing, incoming in segments:
        ports = {port.name: port for port in session.outputs}
        written = {name: _part(buffer, starts[name], ports[name]) for name in outputs}
        read = {name: carry[name] for name in incoming}
        for name in outgoing:
            dtype, sizes = _type(ports[name])
            carry[name] = np.empty(sizes, dtype)
        bound = session.bound(carry | written, read)
        inputs = {name: written[name] for name in outputs if name in session.input_names}
        copied = [(carry[name], written[name]) for name in outgoing if name in written]
        steps.append((bound, inputs, copied))

    def write(feeds: Feeds) -> Iterator[np.ndarray]:
        for bound, inputs, copied in steps:
            bound.run(feeds)
            for name, part in inputs.items():
                part[...] = feeds[name]
            for array, part in copied:
                array[...] = part
            yield buffer

    return write


def _part(buffer: np.ndarray, start: int, port: Port) -> np.ndarray:
    """The view of an output in the buffer."""
    _, sizes = _type(port)
    return buffer[start : start + math.prod(sizes)].reshape(sizes)


@cache
def _channels_of_a_block() -> int:
    """Channels per block of onnxruntime's convolutions on this processor; 1 without blocks."""
    try:
        session = OrtSession(reordering(), fusion="done")
    except GraphError:
        return 1
    counting = np.arange(math.prod(REORDERED), dtype=np.float32).reshape(REORDERED)
    (answer,) = session.run(None, {"x": counting})
    begin = answer[0, :, 0, 0]
    return int(np.count_nonzero(begin == np.arange(len(begin))))
