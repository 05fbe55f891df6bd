"""A metric in Python of the project: `file.py:function`.

It runs only because the project declares it, lies in its directory, and its bytes are in the key of
what it makes, as those of custom operators are.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from npumake.custom.blame import blamed
from npumake.custom.closed import Closed, refuse_undeclared
from npumake.custom.declaring import METRIC, declaration
from npumake.custom.operators import under
from npumake.errors import ProjectError, Route, StageError, did_you_mean
from npumake.project.files import SourceFiles

ROUTE, WITH = "evaluation.metric", "evaluation.with"

Summed = Callable[[Iterable[Any]], Mapping[str, float]]


def is_hook(metric: str) -> bool:
    return ".py:" in metric


def hooked(metric: str, sources: SourceFiles) -> tuple[str, Summed]:
    """The function's name, and what calls it. Raises ProjectError where the file has none of that
    name, StageError where it fails or gives no number."""
    (file,) = sources[ROUTE]
    name = metric.rpartition(":")[2]
    beside = {each.name: each for files in under(sources, WITH).values() for each in files}
    files = {**beside, file.name: file}
    read = {each.name: each.read() for each in files.values()}
    paths = {each.name: each.path for each in files.values()}
    refuse_undeclared(read, partial(declaration, METRIC, paths))
    names = Closed(read).names(file.name)
    if not callable(names.get(name)):
        functions = [key for key, value in names.items() if callable(value)]
        what = f"`{file.name}` has no function `{name}`"
        raise ProjectError(what, Route(ROUTE), did_you_mean(name, functions))

    def summed(answers: Iterable[Any]) -> Mapping[str, float]:
        with blamed(f"the metric `{name}`", [*files]):
            returned = names[name](iter(answers))
        try:
            value = float(returned)
        except (TypeError, ValueError, OverflowError) as error:
            what = f"the metric `{name}` returns {reprlib.repr(returned)}"
            raise StageError(what, file.name, "one number is asked for") from error
        if not math.isfinite(value):
            raise StageError(f"the metric `{name}` is {value}", file.name)
        return {name: value}

    return name, summed
