"""EXTRAS: by distribution, the extra of npumake that installs it.

`pyproject.toml` declares the extras; tests/test_dependencies.py holds both to each other. An error
about a library that is absent names its install line, so that the line is right everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

EXTRAS: Mapping[str, str] = {
    "ai-edge-litert": "tflite",
    "ethos-u-vela": "ethos-u",
    "iree-base-compiler": "iree",
    "iree-base-runtime": "iree",
    "obstore": "remote",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tf2onnx": "tensorflow",
    "tosa-converter-for-tflite": "iree",
}


def install_line(distribution: str) -> str:
    """The command that installs a distribution, for the hint of an error.

    >>> install_line("ethos-u-vela")
    "pip install 'npumake[ethos-u]'"
    """
    extra = EXTRAS.get(distribution)
    return f"pip install {distribution}" if extra is None else f"pip install 'npumake[{extra}]'"
