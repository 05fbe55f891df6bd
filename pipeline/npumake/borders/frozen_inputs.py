"""Freezes inputs that never change: each becomes a constant of the model, and is no longer fed.

A sampling rate, the size of the original picture or a training flag decides branches and shapes.
Once its value is known, the passes resolve both. OpenVINO's converter freezes inputs likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from npumake.errors import ProjectError, Route
from npumake.graph import Graph, Value, dtype, shape
from npumake.project.names import EVERY, numbered
from npumake.project.sections import Input

Constant = bool | float | tuple[float, ...]


def has_frozen(inputs: Mapping[str, Input]) -> bool:
    """Whether the section `inputs` freezes one."""
    return any(section.value is not None for section in inputs.values())


def refuse_unnamed(inputs: Mapping[str, Input], count: int) -> None:
    """Raises ProjectError for a number or `*` beside a `value`: without the frozen input, the
    numbers of the others change. `inputs` is the section as written, `count` the model's inputs."""
    unnamed = {numbered(index) for index in range(count)} if has_frozen(inputs) else ()
    for key, section in inputs.items():
        if key in unnamed or (key == EVERY and section.value is not None):
            message = f"`{key}` beside a `value`, which changes the numbers of inputs"
            raise ProjectError(message, Route(f"inputs.{key}"), "write the names of the inputs")


def freeze_inputs(graph: Graph, inputs: Mapping[str, Input]) -> None:
    """Replaces every input that has a `value`. `inputs` has the names of the model. Raises
    ProjectError for a value that does not fit, and if no input is left."""
    for value in tuple(graph.inputs):
        name = str(value.name)
        section = inputs.get(name, Input())
        if section.value is None:
            continue
        if replace(section, value=None, shape=None) != Input():
            message = f"`value` makes `{name}` a constant: its other keys have no effect"
            hint = "keep `value` alone, or with `shape`"
            raise ProjectError(message, Route(f"inputs.{name}.value"), hint)
        if len(graph.inputs) == 1:
            message = f"`{name}` is the last input to be fed, and a model needs one"
            raise ProjectError(message, Route(f"inputs.{name}.value"), "remove its `value`")
        dims = section.shape or shape(value)
        frozen = graph.constant(f"{name}_frozen", _array(value, section.value, dims))
        graph.replace_uses(value, frozen)
        graph.drop_input(value)


def _array(value: Value, constant: Constant, dims: tuple[int, ...]) -> np.ndarray:
    """The constant in the type of the input and these dimensions. One number fills them."""
    name, numbers = str(value.name), np.asarray(constant)
    route = Route(f"inputs.{name}.value")
    if numbers.ndim and numbers.size != prod(dims):
        message = f"{numbers.size} numbers for input `{name}`, which has {prod(dims)}"
        raise ProjectError(message, route, "one number alone fills the input")
    with np.errstate(all="ignore"):
        array = numbers.astype(dtype(value))
    is_exact = np.isfinite(array) if array.dtype.kind == "f" else array == numbers
    if not np.all(is_exact):
        message = f"{dtype(value)}, the type of input `{name}`, cannot represent this value"
        raise ProjectError(message, route, "write a number of that type")
    return np.broadcast_to(array.reshape(dims) if numbers.ndim else array, dims).copy()
