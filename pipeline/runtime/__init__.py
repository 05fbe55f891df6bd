"""Run any artifact: `Session(path)` looks like an onnxruntime session, whatever the file is.

It refuses to know how the artifact was made.
"""

from pipeline.bundle.secure import Keys
from pipeline.runtime.session import Session
from pipeline.runtime.vendor_session import HB_ONNXRuntime, HBRuntime

__all__ = ["HBRuntime", "HB_ONNXRuntime", "Keys", "Session"]
