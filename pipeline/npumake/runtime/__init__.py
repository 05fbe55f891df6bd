"""Runs any artifact: `Session(path)` has the interface of an onnxruntime session.

This room does not know how the artifact was built.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from npumake.runtime.session import Session
from npumake.runtime.vendor_session import HB_ONNXRuntime, HBRuntime

if TYPE_CHECKING:
    from npumake.bundle.secure import Keys

__all__ = ["HBRuntime", "HB_ONNXRuntime", "Keys", "Session"]


def __getattr__(name: str) -> Any:
    """Loads `Keys`, and with it the cryptography, at its first use."""
    if name != "Keys":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("npumake.bundle.secure").Keys
