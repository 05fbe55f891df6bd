"""Runs OpenVINO's IR, a .zip of model.xml and model.bin, on the CPU."""

from __future__ import annotations

import io
import threading
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from npumake.engine.port import Port, port
from npumake.errors import GraphError
from npumake.extras import install_line
from npumake.project.files import MAX_MODEL_BYTES

MEMBERS = ("model.xml", "model.bin")
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}  # no bfloat16 on processors that have it
# Without OpenVINO's own rewriting into integers, whose products saturate at 16 bits on a processor
# without VNNI.
AS_WRITTEN = {**EXACT, "LP_TRANSFORMS_MODE": "NO"}
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError, ValueError)


class OpenVinoSession:
    """Raises GraphError if OpenVINO is not installed or refuses the file."""

    def __init__(self, data: bytes, name: str, threads: int = 1) -> None:
        network, weights = _members(data, name)
        try:
            openvino = import_module("openvino")  # large, and an extra
        except ImportError as error:
            hint = f"{install_line('openvino')}, into the environment of npumake"
            raise GraphError("a .zip needs OpenVINO, which is missing", name, hint) from error
        try:
            core = openvino.Core()
            settings = {**EXACT, "INFERENCE_NUM_THREADS": threads}
            self._model = core.compile_model(core.read_model(network, weights), "CPU", settings)
        except (RuntimeError, TypeError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1][:200]
            raise GraphError(f"OpenVINO refuses the model: {reason}", name) from error
        self._requests = threading.local()  # a request runs one frame at a time
        self.inputs = tuple(map(_port, self._model.inputs))
        self.outputs = tuple(map(_port, self._model.outputs))
        self.input_names = tuple(input_.name for input_ in self.inputs)
        self.output_names = tuple(input_.name for input_ in self.outputs)

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The named outputs (None: all) for one set of feeds. Raises GraphError."""
        _refuse_misfits(self.inputs, feeds)
        try:
            results = self._request().infer([feeds[name] for name in self.input_names])
        except RuntimeError as error:
            raise GraphError(f"OpenVINO cannot run the model: {error}") from error
        arrays = dict(zip(self.output_names, results.values(), strict=True))
        return [np.array(arrays[name]) for name in names or self.output_names]

    def _request(self) -> Any:
        """The request of this thread."""
        if not hasattr(self._requests, "own"):
            self._requests.own = self._model.create_infer_request()
        return self._requests.own


def _members(data: bytes, name: str) -> tuple[bytes, bytes]:
    """The network and its weights. Raises GraphError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(archive.getinfo(member).file_size for member in MEMBERS) > MAX_MODEL_BYTES:
                raise ValueError("a model of more than 2 GiB")
            network, weights = (archive.read(member) for member in MEMBERS)
    except _DAMAGE as error:
        message = f"no OpenVINO model, which is a .zip of {' and '.join(MEMBERS)}: {error}"
        raise GraphError(message, name) from error
    return network, weights


def _port(value: Any) -> Port:
    """A port with its first name in order, as a tensor may have several."""
    sizes = [int(size) for size in value.get_partial_shape().get_min_shape()]
    return port(min(value.names), sizes, np.dtype(value.get_element_type().to_dtype()).name)


def _refuse_misfits(inputs: Sequence[Port], feeds: Mapping[str, np.ndarray]) -> None:
    for input_ in inputs:
        if input_.name not in feeds:
            raise GraphError(f"the model reads `{input_.name}`, which is not fed")
        array, shape = feeds[input_.name], tuple(input_.shape)
        if (array.dtype, array.shape) != (input_.dtype, shape):
            message = f"`{input_.name}` is fed {array.dtype}{list(array.shape)}"
            raise GraphError(f"{message}, not {input_.dtype}{list(shape)}")
