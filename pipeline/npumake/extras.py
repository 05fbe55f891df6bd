"""EXTRAS: by distribution, the extra of npumake that installs it.

`pyproject.toml` declares the extras; tests/test_dependencies.py holds both to each other. An error
about a library that is absent names its install line, so that the line is right everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from shlex import quote
from typing import Literal

Installer = Literal["pip", "pip --python", "pipx", "uv", "uv tool"]

EXTRAS: Mapping[str, str] = {
    "ai-edge-litert": "tflite",
    "distributed": "dask",
    "ethos-u-vela": "ethos-u",
    "iree-base-compiler": "iree",
    "iree-base-runtime": "iree",
    "obstore": "remote",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tf2onnx": "tensorflow",
    "tosa-converter-for-tflite": "iree",
}


def install_line(name: str, by: Installer | None = None) -> str:
    """The command that installs the distribution `name`, for the hint of an error; `by` is what
    installed npumake.

    >>> install_line("ethos-u-vela", "pip")
    "pip install 'npumake[ethos-u]'"
    >>> install_line("ethos-u-vela", "pipx")
    'pipx inject npumake ethos-u-vela'
    """
    by = by or installer()
    extra = EXTRAS.get(name)
    if by == "pipx":
        return f"pipx inject npumake {name}"
    if by == "uv tool":
        return f"uv tool install --with {name} npumake"
    commands = {"uv": "uv pip install", "pip --python": f"pip --python {quote(sys.prefix)} install"}
    command = commands.get(by, "pip install")
    return f"{command} {name}" if extra is None else f"{command} 'npumake[{extra}]'"


@cache
def installer() -> Installer:
    """The installer of npumake in this interpreter."""
    prefix = sys.prefix.replace("\\", "/")
    if "/pipx/venvs/" in prefix:
        return "pipx"
    if "/uv/tools/" in prefix:
        return "uv tool"
    try:
        recorded = distribution("npumake").read_text("INSTALLER") or ""  # as UTF-8
    except PackageNotFoundError:  # run from a folder of sources
        recorded = ""
    if recorded.strip() == "uv":
        return "uv"
    if find_spec("pip") is not None:
        return "pip"
    # An environment made by `venv --without-pip`: a pip outside installs into it.
    return "pip --python" if recorded.strip() == "pip" else "uv"
