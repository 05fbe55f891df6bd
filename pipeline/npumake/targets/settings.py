"""Checks the section `compile:` against the chip and the model."""

from __future__ import annotations

from npumake.errors import ProjectError, Route, did_you_mean
from npumake.graph import Graph, shape
from npumake.project.compiling import REMOVED, Compile
from npumake.targets.target import Target

DEFAULT_SOURCE = "_default_value"  # of the inputs that are not named
RESIZER_PIXELS = 18432  # height * width must be below (D-Robotics PTQ guide, `input_source`)
MIN_CALL_MICROSECONDS = 1000  # microseconds (the same, `max_time_per_fc`)


def check_settings(compile: Compile, graph: Graph, target: Target) -> None:
    """Raises ProjectError for a setting that the chip or the model does not support."""
    max_cores, limit = target.cost.core_num, compile.max_time_per_fc
    if max_cores is not None and compile.core_num > max_cores:
        message = f"`{target.name}` runs a model on at most {max_cores} of its cores"
        raise ProjectError(message, Route("compile.core_num"), "write a smaller number")
    if 0 < limit < MIN_CALL_MICROSECONDS:
        message = f"a function call of at most {limit} us is too short"
        raise ProjectError(message, Route("compile.max_time_per_fc"), "0, or 1000 and more")
    shapes = {str(value.name): shape(value) for value in graph.inputs}
    for name, source in compile.input_source.items():
        where = Route(f"compile.input_source.{name}")
        if name not in (*shapes, DEFAULT_SOURCE):
            raise ProjectError(f"no input `{name}`", where, did_you_mean(name, shapes))
        if source == "resizer" and _is_too_large(shapes.get(name, ())):
            message = f"the resizer gives fewer than {RESIZER_PIXELS} pixels"
            raise ProjectError(message, where, "a smaller model, or `pyramid`")


def check_border_kept(compile: Compile, target: Target) -> None:
    """Raises ProjectError for removals from a file other than a bundle."""
    for key in REMOVED:
        if getattr(compile, key):
            message = f"the border of a file for `{target.name}` is its compiler's"
            hint = f"leave it out, or use `model.{key}` for the trained model"
            raise ProjectError(message, Route(f"compile.{key}"), hint)


def _is_too_large(size: tuple[int, ...]) -> bool:
    """Height and width are the two largest sides behind the batch, in either layout."""
    sides = sorted(size[1:])[-2:]
    return len(sides) == 2 and sides[0] * sides[1] >= RESIZER_PIXELS
