"""onnxruntime, configured so that the same graph and feeds give the same bits.

A session uses one thread: the split of a sum over threads must not decide its last bit. Speed comes
from running several samples in parallel (npumake.engine.parallel).

Levels of Fusion:

    integers   all: nodes between Q/DQ pairs become integer kernels, faster for fully quantized
               graphs. In partly quantized ones onnxruntime quantizes more on its own: weights
               between two pairs, and the float operand of a MatMul
    floats     float nodes only: nodes between Q/DQ pairs compute in float, as written
    none       nothing: a node computes the same alone and in a graph
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from npumake.engine.port import Port
from npumake.errors import GraphError
from npumake.graph.float_ports import with_float_ports
from npumake.graph.loops import ending, endless, too_long
from npumake.graph.proto import has_grids_and_branches, has_uneven_average, has_wide_bias
from npumake.late import when_used
from npumake.lifetime.temporaries import temporary_folder

with when_used("onnxruntime"):  # another calibration method runs no inference
    import onnxruntime

Arrays = Mapping[str, np.ndarray]
Feeds = Arrays
Fusion = Literal["integers", "floats", "none"]

# onnxruntime's exceptions have no common base class of their own.
_REFUSALS = (
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NotImplemented",
    "RuntimeException",
)


def _ports(session: onnxruntime.InferenceSession) -> list[onnxruntime.NodeArg]:
    return [*session.get_inputs(), *session.get_outputs()]


def _refusals() -> tuple[type[Exception], ...]:
    state = onnxruntime.capi.onnxruntime_pybind11_state
    return (RuntimeError, ValueError, *(getattr(state, name) for name in _REFUSALS))


def _trouble() -> tuple[type[Exception], ...]:
    """Exceptions after which fewer fusions may succeed."""
    state = onnxruntime.capi.onnxruntime_pybind11_state
    return (RuntimeError, state.Fail, state.NotImplemented)


class OrtSession:
    """An onnxruntime session of a model. Inputs and outputs in bfloat16 are passed as float32.

    Raises GraphError for a model that onnxruntime refuses, and for an endless loop
    (npumake.graph.loops).
    """

    def __init__(self, model: bytes, threads: int = 1, fusion: Fusion = "integers") -> None:
        """Use more threads only for a model with exact sums, or if the last bit does not matter."""
        model = ending(model)
        try:
            self._session = _session(model, threads, fusion)
            if "tensor(bfloat16)" in {port.type for port in _ports(self._session)}:
                self._session = _session(with_float_ports(model), threads, fusion)
        except _refusals() as error:
            raise GraphError(f"onnxruntime refuses the model: {error}") from error
        self.inputs = tuple(Port(i.name, i.shape, i.type) for i in self._session.get_inputs())
        self.outputs = tuple(Port(o.name, o.shape, o.type) for o in self._session.get_outputs())
        self.input_names = tuple(port.name for port in self.inputs)
        self.output_names = tuple(port.name for port in self.outputs)

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """Returns the named outputs (all when None) for one set of feeds. Raises GraphError."""
        try:
            return self._session.run(list(names or self.output_names), dict(feeds))
        except _refusals() as error:
            raise _failed(error) from error

    def bound(self, outputs: Arrays) -> Bound:
        """Binds arrays without copies: results are written into `outputs`. Types and shapes must be
        those of the session; outputs that are also inputs are not written."""
        return Bound(self._session, outputs)


class Bound:
    """A session bound to its arrays; one thread at a time may run it."""

    def __init__(self, session: onnxruntime.InferenceSession, outputs: Arrays) -> None:
        self._session, self._binding = session, session.io_binding()
        self._outputs = outputs  # keeps them alive: the binding stores only addresses
        self._input_names = [port.name for port in session.get_inputs()]
        self._written = [o.name for o in session.get_outputs() if o.name not in self._input_names]
        for name in self._written:
            self._binding.bind_output(name, "cpu", 0, *_address(outputs[name]))

    def run(self, feeds: Feeds) -> None:
        """Raises GraphError."""
        refusals: tuple[type[Exception], ...] = (
            RuntimeError,
            *_refusals(),
        )  # raised with bound arrays
        try:
            for name in self._input_names:
                # np.ascontiguousarray would turn a scalar into an array of shape (1,).
                self._binding.bind_cpu_input(name, np.asarray(feeds[name], order="C"))
            if self._written:
                self._session.run_with_iobinding(self._binding)
        except refusals as error:
            raise _failed(error) from error


def _address(array: np.ndarray) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    return array.dtype, array.shape, array.ctypes.data


def _failed(error: Exception) -> GraphError:
    """The GraphError, with our message for a loop that reached its bound."""
    loop = endless(str(error))
    if loop is not None:
        return too_long(loop, "does not end")
    return GraphError(f"onnxruntime cannot run the model: {error}")


def optimized_by_onnxruntime(model: bytes) -> bytes:
    """The model after onnxruntime's optimizations, without processor-specific layouts. Raises
    GraphError for a model that onnxruntime refuses."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 4
    # Keeps int8: some processors would get it shifted to uint8, others not.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return _written_down(model, options)


def _written_down(model: bytes, options: onnxruntime.SessionOptions) -> bytes:
    with temporary_folder() as folder:
        file = folder / "optimized.onnx"
        options.optimized_model_filepath = str(file)
        options.add_session_config_entry(
            "session.disable_prepacking", "1"
        )  # the session runs nothing
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
    config: Mapping[str, str] = MappingProxyType({}),
) -> onnxruntime.SessionOptions:
    """Session options; `more` are config entries in addition to those of the fusion."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # it holds all tensors of a run beside those of the arena
    entries = {
        # A waiting thread that spins takes the core of the next one.
        "session.intra_op.allow_spinning": "0",
        # int8 by int8 without VNNI saturates pairs of products at 16 bits.
        "session.x64quantprecision": "1",
        **({"session.disable_quant_qdq": "1"} if fusion == "floats" else {}),
        **config,
    }
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = getattr(levels, level)
    options.log_severity_level = 4  # errors are raised, so the log is noise
    return options


# Attempts in order: the optimization level and its config entries, plus the entries of the attempts
# before.
_WAYS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("ORT_ENABLE_ALL", {}),
    # The blocked layout loses an output that an Add also reads.
    ("ORT_ENABLE_EXTENDED", {}),
    # Without VNNI a zero point shared by two weights fails: fall back to floats, as written.
    ("ORT_ENABLE_EXTENDED", {"session.disable_quant_qdq": "1"}),
    # That processor also lacks QGemm of int8 by uint8; all-int8 is exact as it is.
    ("ORT_ENABLE_ALL", {"session.x64quantprecision": "0", "session.qdqisint8allowed": "1"}),
)


def _left_out(model: bytes) -> set[str]:
    """onnxruntime rewrites to disable: it moves Q/DQ past a node that a branch reads, and aborts.
    Its QLinearAveragePool refuses dilations, and with ceil_mode counts elements beyond the pads. It
    rounds a float bias beside int16 weights to 32 bits, where it wraps."""
    branches = {"QDQPropagationTransformer"} if has_grids_and_branches(model) else set()
    pools = {"QDQSelectorActionTransformer"} if has_uneven_average(model) else set()
    biases = {"WeightBiasQuantization"} if has_wide_bias(model) else set()
    return branches | pools | biases


def _session(model: bytes, threads: int, fusion: Fusion) -> onnxruntime.InferenceSession:
    left_out = _left_out(model)

    def opened(level: str, entries: Mapping[str, str]) -> onnxruntime.InferenceSession:
        options = _options(threads, fusion, level, entries)
        cpu = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(
            model, options, providers=cpu, enable_fallback=0, disabled_optimizers=left_out
        )
        session._model_bytes = None  # kept for a change of providers, which none here makes
        return session

    if fusion == "none":
        return opened("ORT_DISABLE_ALL", {})
    refused: list[Exception] = []
    entries: dict[str, str] = {}
    for level, config in _WAYS:
        entries |= config
        try:
            return opened(level, entries)
        except _trouble() as error:
            refused.append(error)
    raise refused[0]
