"""Operators of the user's own: Python that a project declares and that runs on the CPU.

    @op_implement_register("Type")     a class: __init__(**attributes), compute(*arrays) → array(s)
    @op_shape_infer_register("Type")   a function: list of input shapes → list of output shapes

The files are loaded from bytes that somebody has chosen to trust: the project that declares them,
or the caller of a Session. The room refuses to know where they come from.
"""

from npumake.custom.register import op_implement_register, op_shape_infer_register

__all__ = ["op_implement_register", "op_shape_infer_register"]
