"""The two decorators of an operator file. They only mark; `operators` collects the marks.

There is no global table, so a test may import an operator file repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Implementation = TypeVar("Implementation", bound=type)
ShapeFunction = TypeVar("ShapeFunction", bound=Callable[..., Any])

IMPLEMENTS, SHAPES = "_implements_operators", "_shapes_operators"


def op_implement_register(op_type: str) -> Callable[[Implementation], Implementation]:
    """Marks a class as the operator: `compute(*arrays)` returns one array or several."""
    return lambda marked: _marked(marked, IMPLEMENTS, op_type)


def op_shape_infer_register(op_type: str) -> Callable[[ShapeFunction], ShapeFunction]:
    """Marks a shape function: list of input shapes → list of output shapes."""
    return lambda marked: _marked(marked, SHAPES, op_type)


def marks(thing: object, mark: str) -> tuple[str, ...]:
    """The operator types that mark `thing` itself, without those of base classes."""
    try:
        return vars(thing).get(mark, ())
    except TypeError:  # no attributes: a number, a module's text
        return ()


def _marked(thing: Any, mark: str, op_type: str) -> Any:
    setattr(thing, mark, (*marks(thing, mark), op_type))
    return thing
