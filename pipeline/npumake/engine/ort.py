"""onnxruntime, set up so that the same graph and feeds give the same bits.

A session uses one thread: how a sum is split over threads must not decide its last bit.
Speed comes from running several samples at once instead (npumake.engine.parallel).

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

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from npumake.engine.port import Port
from npumake.errors import GraphError
from npumake.graph.loops import ending, endless, too_long
from npumake.graph.proto import has_grids_and_branches, has_uneven_average, has_wide_bias
from npumake.late import when_used
from npumake.lifetime.temporaries import temporary_folder

with when_used("onnxruntime"):  # who changes the method of a calibration runs nothing
    import onnxruntime

Arrays = Mapping[str, np.ndarray]
Feeds = Arrays
Fusion = Literal["integers", "floats", "none", "done"]

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
    return (RuntimeError, ValueError, *(getattr(state, name) for name in _REFUSALS))


def _trouble() -> tuple[type[Exception], ...]:
    """What it raises of a model that it may take with fewer fusions."""
    state = onnxruntime.capi.onnxruntime_pybind11_state
    return (RuntimeError, state.Fail, state.NotImplemented)


class OrtSession:
    """A model in onnxruntime's hands. Raises GraphError when it will not take the model, and where
    a loop does not end (npumake.graph.loops)."""

    def __init__(self, model: bytes, threads: int = 1, fusion: Fusion = "integers") -> None:
        """More threads only for a model whose sums are exact, or where the last bit is nothing."""
        model = ending(model)
        try:
            self._session = _session(model, threads, fusion)
        except _refusals() as error:
            raise GraphError(f"onnxruntime refuses the model: {error}") from error
        self.inputs = tuple(Port(i.name, i.shape, i.type) for i in self._session.get_inputs())
        self.outputs = tuple(Port(o.name, o.shape, o.type) for o in self._session.get_outputs())
        self.input_names = tuple(port.name for port in self.inputs)
        self.output_names = tuple(port.name for port in self.outputs)

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """The named outputs (all when None) for one set of feeds. Raises GraphError."""
        try:
            return self._session.run(list(names or self.output_names), dict(feeds))
        except _refusals() as error:
            raise _failed(error) from error

    def bound(self, outputs: Arrays, inputs: Arrays = MappingProxyType({})) -> Bound:
        """The session that writes its outputs, but those that it was fed, into the arrays `made`,
        and whose inputs that are among `read` are these arrays. No copies. They are of the types
        and shapes of outputs and inputs."""
        return Bound(self._session, outputs, inputs)


class Bound:
    """A session with its arrays. One thread at a time may run it."""

    def __init__(
        self, session: onnxruntime.InferenceSession, outputs: Arrays, read: Arrays
    ) -> None:
        self._session, self._binding = session, session.io_binding()
        self._arrays = outputs, read  # held: the binding knows nothing but where they are
        inputs = [port.name for port in session.get_inputs()]
        self._fed = [name for name in inputs if name not in read]
        self._written = [o.name for o in session.get_outputs() if o.name not in inputs]
        for name in self._written:
            self._binding.bind_output(name, "cpu", 0, *_address(outputs[name]))
        for name in read:
            self._binding.bind_input(name, "cpu", 0, *_address(read[name]))

    def run(self, feeds: Feeds) -> None:
        """Raises GraphError."""
        refusals: tuple[type[Exception], ...] = (RuntimeError, *_refusals())  # of bound arrays
        try:
            for name in self._fed:
                # np.ascontiguousarray would make a scalar a list of one.
                self._binding.bind_cpu_input(name, np.asarray(feeds[name], order="C"))
            if self._written:
                self._session.run_with_iobinding(self._binding)
        except refusals as error:
            raise _failed(error) from error


def _address(array: np.ndarray) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    return array.dtype, array.shape, array.ctypes.data


def _failed(error: Exception) -> GraphError:
    """In our words where it is a loop that was stopped."""
    loop = endless(str(error))
    if loop is not None:
        return too_long(loop, "does not end")
    return GraphError(f"onnxruntime cannot run the model: {error}")


def optimized_by_onnxruntime(model: bytes) -> bytes:
    """The model as onnxruntime rewrites it before it runs it, as far as no layout of this machine's
    processor is in it. Raises GraphError when it will not take the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 4
    # int8 stays int8: else some processors have it shifted to uint8, and others not.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return _written_down(model, options)


def rewritten(model: bytes) -> bytes:
    """The model as a session would run it on this machine's processor. Raises GraphError."""
    return _written_down(model, _options(1, "integers"))


def _written_down(model: bytes, options: onnxruntime.SessionOptions) -> bytes:
    with temporary_folder() as folder:
        file = folder / "optimized.onnx"
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


def _left_out(model: bytes) -> set[str]:
    """Of its rewritings: it moves Q/DQ past a node whose result a branch reads, and ends the
    process there; its QLinearAveragePool refuses dilations and, of a window that ceil_mode lets
    overhang, counts what is beyond the pads; and a real bias beside weights of int16 it rounds to
    32 bits, where it wraps."""
    branches = {"QDQPropagationTransformer"} if has_grids_and_branches(model) else set()
    pools = {"QDQSelectorActionTransformer"} if has_uneven_average(model) else set()
    biases = {"WeightBiasQuantization"} if has_wide_bias(model) else set()
    return branches | pools | biases


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
