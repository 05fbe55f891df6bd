"""ADAPTERS: by Target.backend, a compiler in a separate interpreter.

Outputs of rknn and torq differ in a few bytes per run. Their cache key covers the inputs and the
compiler's version, and their bytes are never compared.

Imports no numerical packages: it runs in every build, also when there is nothing to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from npumake.compilers.adapters.assets import SCRIPTS
from npumake.compilers.process import finished, refuse_failure
from npumake.compilers.versions import answer
from npumake.errors import StageError
from npumake.lifetime.temporaries import temporary_folder

VERSIONS_SCRIPT = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"


@dataclass(frozen=True)
class Adapter:
    """`distributions` must be installed in the interpreter. The script writes the files `makes`:
    one, or the members of a ZIP. `runs` is the script that runs them, if any."""

    name: str
    script: str
    distributions: tuple[str, ...]
    takes: Literal["model.onnx", "model.tflite", "model.mlirbc"]
    makes: tuple[str, ...]
    runs: str = ""

    @property
    def variable(self) -> str:
        """The environment variable that names the interpreter."""
        return f"NPUMAKE_{self.name.upper()}_PYTHON"


ADAPTERS: Mapping[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        Adapter(
            "openvino",
            "with_openvino.py",
            ("openvino",),
            "model.onnx",
            ("model.xml", "model.bin"),
            "run_openvino.py",
        ),
        Adapter(
            "qnn",
            "with_qnn.py",
            ("onnxruntime-qnn", "onnxruntime"),
            "model.onnx",
            ("compiled.onnx",),
        ),
        Adapter("rknn", "with_rknn.py", ("rknn-toolkit2",), "model.onnx", ("model.rknn",)),
        Adapter("torq", "with_torq.py", ("torq-compiler",), "model.mlirbc", ("model.vmfb",)),
    )
}


def versions(adapter: Adapter) -> dict[str, str]:
    """By distribution; empty unless the interpreter has them all."""
    interpreter = os.environ.get(adapter.variable)
    if not interpreter or not os.path.isfile(interpreter):
        return {}
    command = (interpreter, "-I", "-c", VERSIONS_SCRIPT, *adapter.distributions)
    words = answer(command, os.stat(interpreter).st_mtime_ns).split()
    has_all = len(words) == len(adapter.distributions)
    return dict(zip(adapter.distributions, words, strict=True)) if has_all else {}


def absent(adapter: Adapter) -> StageError:
    """The error for an interpreter that is not named or lacks a distribution."""
    needed = " ".join(adapter.distributions)
    message = f"this target needs {needed}, which is not installed"
    how = f"`python -m venv X`, `X/bin/pip install {needed}`, {adapter.variable}=X/bin/python"
    return StageError(message, None, f"install it into a separate environment: {how}")


def adapted(adapter: Adapter, model: bytes, options: Mapping[str, str]) -> dict[str, bytes]:
    """The compiled files by name.

    Raises StageError if the compiler is not installed, fails, or omits a file.
    """
    if not versions(adapter):
        raise absent(adapter)
    with temporary_folder() as folder:
        (folder / adapter.takes).write_bytes(model)
        (folder / "options.json").write_text(json.dumps(dict(options)), encoding="utf-8")
        script = ["-I", str(SCRIPTS / adapter.script)]
        interpreter = os.path.abspath(os.environ[adapter.variable])
        status, stdout, stderr = finished([interpreter, *script], folder)
        lines = [*stdout.splitlines(), *stderr.splitlines()]
        products = {name: folder / name for name in adapter.makes}
        refuse_failure(adapter.distributions[0], status, lines, [*products.values()])
        return {name: file.read_bytes() for name, file in products.items()}
