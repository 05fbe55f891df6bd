"""onnxruntime, set up so that the same graph and feeds give the same bits.

A session uses one thread: how a sum is split over threads must not decide its last bit.
Speed comes from running several samples at once instead (pipeline.engine.parallel).

What is fused (Fusion):

    integers   all: what stands between Q/DQ pairs becomes an integer kernel, which is faster where
               all is quantized; where little is, onnxruntime quantizes on its own what is not: the
               weights between two pairs, and what is multiplied by the only quantized operand of a
               MatMul
    floats     float nodes only: what stands between Q/DQ pairs computes in float, as written
    none       nothing: a node computes alone what it computes in any company
    done       nothing more: the model is onnxruntime's own rewriting, run in the order it is in
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Literal

import numpy as np

from pipeline.engine.port import Port
from pipeline.errors import GraphError
from pipeline.graph import REORDERED, hasty, reordering
from pipeline.graph.loops import ending, endless, too_long
from pipeline.graph.proto import has_grids_and_branches
from pipeline.late import when_used

with when_used("onnxruntime"):  # who changes the method of a calibration runs nothing
    import onnxruntime

Feeds = Mapping[str, np.ndarray]
Fusion = Literal["integers", "floats", "none", "done"]
# Runs the model and gives the buffer with all outputs, one behind the other.
Writer = Callable[[Feeds], np.ndarray]
Blocks = Mapping[str, int]  # how many channels of an output lie side by side, where some do

# What onnxruntime raises has no common base of its own.
_REFUSALS = (
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NotImplemented",
    "RuntimeException",
)


def _refusals() -> tuple[type[Exception], ...]:
    state = onnxruntime.capi.onnxruntime_pybind11_state
    return (ValueError, *(getattr(state, name) for name in _REFUSALS))


def _trouble() -> tuple[type[Exception], ...]:
    """What it raises of a model that it may take with fewer fusions."""
    state = onnxruntime.capi.onnxruntime_pybind11_state
    return (RuntimeError, state.Fail, state.NotImplemented)


class OrtSession:
    """A model in onnxruntime's hands. Raises GraphError when it will not take the model, and where
    a loop does not end (pipeline.graph.loops)."""

    def __init__(self, model: bytes, threads: int = 1, fusion: Fusion = "integers") -> None:
        """More threads only for a model whose sums are exact, or where the last bit is nothing."""
        model = ending(model)
        try:
            self._session = _session(model, threads, fusion)
        except _refusals() as error:
            raise GraphError(f"onnxruntime refuses the model: {error}") from error
        self.inputs = tuple(Port(i.name, i.shape, i.type) for i in self._session.get_inputs())
        self.outputs = tuple(Port(o.name, o.shape, o.type) for o in self._session.get_outputs())
        self.input_names = tuple(given.name for given in self.inputs)
        self.output_names = tuple(made.name for made in self.outputs)

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """The named outputs (all when None) for one set of feeds. Raises GraphError."""
        try:
            return self._session.run(list(names or self.output_names), dict(feeds))
        except _refusals() as error:
            raise _failed(error) from error

    def writer(self, starts: Sequence[int], buffer: np.ndarray) -> Writer:
        """Writes every output into `buffer`, float32, from its start on; no copies. The outputs
        are float32 and of static shape. One thread at a time may use it; it raises GraphError."""
        binding = self._session.io_binding()
        own: dict[str, int] = {}  # an input that is an output too, onnxruntime does not write
        for output, start in zip(self._session.get_outputs(), starts, strict=True):
            if output.name in self.input_names:
                own[output.name] = int(start)
                continue
            place = buffer[start:].ctypes.data
            binding.bind_output(output.name, "cpu", 0, np.float32, output.shape, place)

        def write(feeds: Feeds) -> np.ndarray:
            try:
                for name, values in feeds.items():
                    # np.ascontiguousarray would make a scalar a list of one.
                    binding.bind_cpu_input(name, np.asarray(values, order="C"))
                    if name in own:
                        buffer[own[name] : own[name] + values.size] = values.ravel()
                if len(own) < len(starts):
                    self._session.run_with_iobinding(binding)
            except _refusals() as error:
                raise _failed(error) from error
            return buffer

        return write


def _failed(error: Exception) -> GraphError:
    """In our words where it is a loop that was stopped."""
    loop = endless(str(error))
    if loop is not None:
        return too_long(loop, "does not end")
    return GraphError(f"onnxruntime cannot run the model: {error}")


def hasty_session(model: bytes) -> tuple[OrtSession, Blocks]:
    """A session that makes each output as soon as it can be made, and how many channels lie side by
    side in those that it hands out in blocks (pipeline.graph.blocked). Raises GraphError.

    For a model without branches and loops. onnxruntime makes the longest way through a model first
    and turns to what else is asked for when that has long left the cache; told to write down how
    it would run the model, it runs that in the order it finds, and gives the same bits.
    """
    block = _channels_of_a_block()
    try:
        rewritten, blocked = hasty(_rewritten(model, _options(1, "integers")), block)
        return OrtSession(rewritten, 1, "done"), dict.fromkeys(blocked, block)
    except GraphError:  # what it takes with fewer fusions
        return OrtSession(model), {}


@cache
def _channels_of_a_block() -> int:
    """How many onnxruntime's convolutions lay side by side on this processor, 1 where none."""
    try:
        session = OrtSession(reordering(), fusion="done")
    except GraphError:
        return 1
    counting = np.arange(math.prod(REORDERED), dtype=np.float32).reshape(REORDERED)
    (answer,) = session.run(None, {"x": counting})
    begin = answer[0, :, 0, 0]
    return int(np.count_nonzero(begin == np.arange(len(begin))))


def optimized_by_onnxruntime(model: bytes) -> bytes:
    """The model as onnxruntime rewrites it before it runs it, as far as no layout of this machine's
    processor is in it. Raises GraphError when it will not take the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 4
    # int8 stays int8: else some processors have it shifted to uint8, and others not.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return _rewritten(model, options)


def _rewritten(model: bytes, options: onnxruntime.SessionOptions) -> bytes:
    """As onnxruntime would run it with these options. Raises GraphError."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(file)
        options.add_session_config_entry("session.disable_prepacking", "1")  # it runs nothing
        try:
            onnxruntime.InferenceSession(
                model, options, ["CPUExecutionProvider"], disabled_optimizers=_left_out(model)
            )
        except _refusals() as error:
            raise GraphError(f"onnxruntime refuses the model: {error}") from error
        return file.read_bytes()


def _options(
    threads: int,
    fusion: Fusion,
    level: str = "ORT_ENABLE_ALL",
    more: Mapping[str, str] = MappingProxyType({}),
) -> onnxruntime.SessionOptions:
    """With `more` entries than those of the fusion."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    entries = {
        # A thread that spins while it waits takes the core of whatever runs next.
        "session.intra_op.allow_spinning": "0",
        # int8 by int8 without VNNI: pairs of products would be cut off at 16 bits.
        "session.x64quantprecision": "1",
        **({"session.disable_quant_qdq": "1"} if fusion == "floats" else {}),
        **more,
    }
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = getattr(levels, level)
    options.log_severity_level = 4  # what matters is raised, the rest is noise
    if fusion == "done":
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    return options


# What a session is tried with, one way after the other: how far it is optimized, and its entries,
# with those of the ways before.
_WAYS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("ORT_ENABLE_ALL", {}),
    # Laying convolutions out in blocks, it loses an answer that an Add behind reads too.
    ("ORT_ENABLE_EXTENDED", {}),
    # Without VNNI it stumbles over a zero point that two weights share: floats then, as written.
    ("ORT_ENABLE_EXTENDED", {"session.disable_quant_qdq": "1"}),
    # There it has no QGemm of int8 by uint8 either, while all of int8 by int8 is exact as it is.
    ("ORT_ENABLE_ALL", {"session.x64quantprecision": "0", "session.qdqisint8allowed": "1"}),
)


def _left_out(model: bytes) -> set[str] | None:
    """Of its rewritings: it moves Q/DQ past a node whose result a branch reads, and ends the
    process there."""
    return {"QDQPropagationTransformer"} if has_grids_and_branches(model) else None


def _session(model: bytes, threads: int, fusion: Fusion) -> onnxruntime.InferenceSession:
    left_out = _left_out(model)

    def opened(level: str, entries: Mapping[str, str]) -> onnxruntime.InferenceSession:
        options = _options(threads, fusion, level, entries)
        cpu = ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(
            model, options, providers=cpu, enable_fallback=0, disabled_optimizers=left_out
        )

    if fusion in ("none", "done"):
        return opened("ORT_DISABLE_ALL", {})
    refused: list[Exception] = []
    entries: dict[str, str] = {}
    for level, more in _WAYS:
        entries |= more
        try:
            return opened(level, entries)
        except _trouble() as error:
            refused.append(error)
    raise refused[0]
