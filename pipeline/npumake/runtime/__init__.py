"""Run any artifact: `Session(path)` looks like an onnxruntime session, whatever the file is.

It refuses to know how the artifact was made.
"""

from npumake.bundle.secure import Keys
from npumake.runtime.session import Session
from npumake.runtime.vendor_session import HB_ONNXRuntime, HBRuntime

__all__ = ["HBRuntime", "HB_ONNXRuntime", "Keys", "Session"]
