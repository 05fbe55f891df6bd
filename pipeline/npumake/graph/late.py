"""onnx-ir without sympy, which takes longer to import than all else that a build needs.

onnx-ir computes with symbolic dimensions by it; a graph here has fixed shapes or names of open
ones, and never asks. Both modules are loaded the moment that anything looks into them.
"""

from npumake.late import when_used

with when_used("sympy", "onnx_ir._symbolic_shapes"):
    import onnx_ir  # noqa: F401
