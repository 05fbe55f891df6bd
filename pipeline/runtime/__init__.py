"""Run any artifact: `Session(path)` looks like an onnxruntime session, whatever the file is.

It refuses to know how the artifact was made.
"""

from pipeline.bundle.secure import Keys
from pipeline.runtime.session import Session

__all__ = ["Keys", "Session"]
