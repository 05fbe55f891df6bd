"""Custom operators: Python that a project declares and that runs on the CPU.

    @op_implement_register("Type")     a class: __init__(**attributes), compute(*arrays) → array(s)
    @op_shape_infer_register("Type")   a function: list of input shapes → list of output shapes

The caller decides which bytes to trust: those a project declares, or those given to a Session.
This room loads bytes and does not know their origin.
"""

from npumake.custom.register import op_implement_register, op_shape_infer_register

__all__ = ["op_implement_register", "op_shape_infer_register"]
