"""Loads onnx-ir without sympy, whose import takes longer than all others of a build.

onnx-ir uses it for symbolic dimensions, which graphs here never compute with. Both modules load on
first access.
"""

from npumake.late import when_used

with when_used("sympy", "onnx_ir._symbolic_shapes"):
    import onnx_ir  # noqa: F401
