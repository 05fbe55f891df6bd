"""A process that builds and runs cases: a file may abort it, and the sweep goes on with another.

A request is (names of cases, names of columns, cells that are known to abort). Before it runs a
file it tells which cells that is about; the last answer is the verdicts by cell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from multiprocessing.connection import Connection

from npumake.errors import PipelineError
from operators.builds import Built, Model
from operators.case_names import case_of
from operators.onnx_cases import is_computable
from operators.runs import RUNS, is_in_float
from operators.together import TOGETHER, Cell, Telling, together
from operators.truth import (
    COLUMNS,
    REFUSED,
    WRONG,
    Column,
    Measured,
    column_of,
    columns_of,
    placement,
    refusal,
    traceback,
)


def serve(pipe: Connection) -> None:
    while (request := pipe.recv()) is not None:
        names, columns, aborting = request
        pipe.send(("done", verdicts(names, columns, aborting, lambda c: pipe.send(("at", c)))))


def verdicts(
    names: Sequence[str],
    columns: Sequence[str],
    aborting: Collection[Cell] = (),
    telling: Telling = lambda cells: None,
) -> dict[Cell, str]:
    """Of every cell but those that abort, and of the cases that onnxruntime computes."""
    cases = {name: case_of(name) for name in names}
    models = {n: Model(case) for n, case in cases.items() if not case.model or is_computable(case)}
    found: dict[Cell, str] = {}
    for name, model in models.items():
        for column in map(column_of, columns):
            is_due = column.name in columns_of(model.case) or column.name not in COLUMNS
            if is_due and (name, column.name) not in aborting:
                telling([(name, column.name)])
                found[name, column.name] = _verdict(model, column)
    for column in map(column_of, columns):
        if column.target().backend in TOGETHER:
            known = {name: found.get((name, column.name), WRONG) for name in models}
            whole = {n: models[n] for n, v in known.items() if not v.startswith((WRONG, REFUSED))}
            found |= together(whole, column, telling)
    return found


def _verdict(model: Model, column: Column) -> str:
    """For a compiler of TOGETHER: where the operator is placed, before it is asked."""
    try:
        built = model.built(column.target(), column.width)
        return _judged(model, built, column)
    except PipelineError as error:
        return refusal(error, model)
    except Exception as error:  # noqa: BLE001  # a traceback is a verdict too
        return traceback(error)


def _judged(model: Model, built: Built, column: Column) -> str:
    backend, where = built.target.backend, placement(built)
    if backend in ("iree", "vela"):
        built.check_tflite()
    if backend not in RUNS:
        return where
    wrong = Measured(model, built, column).wrong(RUNS[backend](built, model))
    if wrong:
        return f"{WRONG}: {wrong}"
    return "float" if backend == "onnx" and where != "float" and is_in_float(built) else where
