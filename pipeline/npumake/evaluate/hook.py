"""A metric in Python of the project: `file.py:function`.

It runs only if the project declares it. The file is in the project's directory, and its bytes are
part of the key of its results, like custom operators.
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
    """The function's name, and a callable that runs it. Raises ProjectError if the file lacks the
    function, StageError if it fails or does not return a finite number."""
    (file,) = sources[ROUTE]
    name = metric.rpartition(":")[2]
    beside = {file.name: file for files in under(sources, WITH).values() for file in files}
    files = {**beside, file.name: file}
    read = {file.name: file.read() for file in files.values()}
    paths = {file.name: file.path for file in files.values()}
    refuse_undeclared(read, partial(declaration, METRIC, paths))
    names = Closed(read).names(file.name)
    if not callable(names.get(name)):
        functions = [key for key, value in names.items() if callable(value)]
        message = f"`{file.name}` has no function `{name}`"
        raise ProjectError(message, Route(ROUTE), did_you_mean(name, functions))

    def summed(results: Iterable[Any]) -> Mapping[str, float]:
        with blamed(f"the metric `{name}`", [*files]):
            returned = names[name](iter(results))
        try:
            value = float(returned)
        except (TypeError, ValueError, OverflowError) as error:
            message = f"the metric `{name}` returns {reprlib.repr(returned)}"
            raise StageError(message, file.name, "it must return one number") from error
        if not math.isfinite(value):
            raise StageError(f"the metric `{name}` is {value}", file.name)
        return {name: value}

    return name, summed
