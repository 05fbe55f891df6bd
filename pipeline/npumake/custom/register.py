"""The two decorators of an operator file. They mark; `loading` finds what they marked.

No table is kept: a file can be imported for a test of its own, twice, and nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Implementation = TypeVar("Implementation", bound=type)
ShapeFunction = TypeVar("ShapeFunction", bound=Callable[..., Any])

IMPLEMENTS, SHAPES = "_implements_operators", "_shapes_operators"


def op_implement_register(op_type: str) -> Callable[[Implementation], Implementation]:
    """The class computes operators of this type: `compute(*arrays)` gives an array, or several."""
    return lambda marked: _marked(marked, IMPLEMENTS, op_type)


def op_shape_infer_register(op_type: str) -> Callable[[ShapeFunction], ShapeFunction]:
    """The function gives a list of output shapes for a list of input shapes."""
    return lambda marked: _marked(marked, SHAPES, op_type)


def marks(thing: object, mark: str) -> tuple[str, ...]:
    """The operator types that `thing` itself was marked with, not those of a class it extends."""
    try:
        return vars(thing).get(mark, ())
    except TypeError:  # no attributes: a number, a module's text
        return ()


def _marked(thing: Any, mark: str, op_type: str) -> Any:
    setattr(thing, mark, (*marks(thing, mark), op_type))
    return thing
