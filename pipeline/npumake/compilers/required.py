"""REQUIRED: by Target.backend, the distributions that compile for it in npumake's interpreter.

Compilers in interpreters of their own are ADAPTERS, a vendor's is a command on PATH. Imports no
numerical packages: a build imports it before its first stage, and `npumake doctor` always.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from npumake.compilers.adapters.adapter import ADAPTERS, absent, versions
from npumake.errors import StageError
from npumake.extras import install_line

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "iree": ("iree-base-compiler", "tosa-converter-for-tflite"),
    "torq": ("tosa-converter-for-tflite",),
    "vela": ("ethos-u-vela",),
}
# The backends whose files npumake writes itself.
BUILT_IN = ("hybrid", "onnx", "tflite")
NO_TOOL_HINT = (
    "install the vendor's toolchain, or compile elsewhere: "
    "npumake handover PROJECT --target CHIP --out DIR"
)


def missing_compiler(backend: str, command: str | None = None) -> StageError | None:
    """The missing compiler of `backend`, with the line that installs it; None if it is there.
    `command` is the vendor's tool, if that compiles."""
    if command is not None:
        executable = shutil.which(command)
        return None if executable else StageError(f"`{command}` is not on PATH", None, NO_TOOL_HINT)
    for distribution in REQUIRED.get(backend, ()):
        if not installed_version(distribution):
            message = f"this target needs {distribution}, which is not installed"
            return StageError(message, None, install_line(distribution))
    adapter = ADAPTERS.get(backend)
    return absent(adapter) if adapter is not None and not versions(adapter) else None


def installed_version(distribution: str) -> str:
    """The version in npumake's interpreter; empty if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
