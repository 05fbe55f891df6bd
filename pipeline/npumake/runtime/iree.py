"""Runs a .vmfb in IREE. It is native code, so the caller must allow it.

Names, scales and zero points are in the ZIP appended to the file (npumake.compilers.iree).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from npumake.errors import GraphError
from npumake.extras import install_line
from npumake.runtime.codes import CodePort

INTERFACE = "interface.json"
MAX_INTERFACE_BYTES = 1 << 20  # bytes of it
_DAMAGE = (zipfile.BadZipFile, EOFError, KeyError, OSError, RuntimeError, TypeError, ValueError)


class IreeSession:
    """Raises GraphError if IREE is not installed or the file is for another processor."""

    def __init__(self, path: Path) -> None:
        inputs, outputs = interface(path)
        try:
            iree = import_module("iree.runtime")  # large, and an extra
        except ImportError as error:
            hint = install_line("iree-base-runtime")
            raise GraphError("a .vmfb needs IREE, which is missing", path.name, hint) from error
        try:
            context = iree.SystemContext(config=iree.Config("local-sync"))
            module = iree.VmModule.copy_buffer(context.instance, path.read_bytes())
            context.add_vm_module(module)
            self._run = context.modules[module.name]["main"]
        except (KeyError, RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise GraphError(f"IREE refuses the file: {reason}", path.name) from error
        self._inputs, self._outputs = inputs, outputs
        self.inputs = tuple(codes.port for codes in inputs)
        self.outputs = tuple(codes.port for codes in outputs)
        self.input_names = tuple(port.name for port in inputs)
        self.output_names = tuple(port.name for port in outputs)

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The named outputs (None: all) for one set of feeds. Raises GraphError."""
        codes = [port.codes(feeds.get(port.name)) for port in self._inputs]
        try:
            outputs = self._run(*codes)
        except (RuntimeError, ValueError) as error:
            raise GraphError(f"IREE cannot run the model: {error}") from error
        results = outputs if isinstance(outputs, tuple | list) else (outputs,)
        real = {
            port.name: port.real(np.asarray(values.to_host()))
            for port, values in zip(self._outputs, results, strict=True)
        }
        return [real[name] for name in names or self.output_names]


def interface(path: Path) -> tuple[tuple[CodePort, ...], tuple[CodePort, ...]]:
    """Inputs and outputs. Raises GraphError for a file that npumake did not write."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(INTERFACE) as member:
            document = json.loads(member.read(MAX_INTERFACE_BYTES))
        return _ports(document["inputs"]), _ports(document["outputs"])
    except _DAMAGE as error:
        raise GraphError(f"no {INTERFACE} behind the code: {error}", path.name) from error


def _ports(tensors: Sequence[Mapping[str, Any]]) -> tuple[CodePort, ...]:
    return tuple(CodePort(**{**tensor, "shape": tuple(tensor["shape"])}) for tensor in tensors)
