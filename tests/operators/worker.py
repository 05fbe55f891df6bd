"""A process that builds and runs cases: a file may abort it, and the sweep goes on with another.

A request is (names of cases, names of columns, cells that are known to abort). Before it runs a
file it tells which cells that is about; the last answer is the verdicts by cell.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Collection, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from operators.builds import Built, Model, united
from operators.cases import case_of
from operators.truth import (
    COLUMNS,
    WRONG,
    Column,
    Measured,
    as_fed,
    as_meant,
    in_float,
    placement,
    refusal,
    run_hybrid,
    run_onnx,
    run_tflite,
)
from operators.vela import on_the_cpu

from pipeline.compilers.backends import built as compiled
from pipeline.compilers.onnx_file import onnx_file
from pipeline.errors import PipelineError
from pipeline.runtime.iree import IreeSession

Cell = tuple[str, str]
Telling = Callable[[Collection[Cell]], None]
TOGETHER = ("iree", "openvino", "vela")  # compilers that take a second, of many cases no more


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
    models = {name: Model(case_of(name)) for name in names}
    found: dict[Cell, str] = {}
    for name, model in models.items():
        for column in map(COLUMNS.__getitem__, columns):
            if (name, column.name) not in aborting:
                telling([(name, column.name)])
                found[name, column.name] = _verdict(model, column)
    for column in map(COLUMNS.__getitem__, columns):
        if column.target().backend in TOGETHER:
            whole = [name for name in names if _is_built(found.get((name, column.name), WRONG))]
            found |= _together({n: models[n] for n in whole}, column, telling)
    return found


def _is_built(verdict: str) -> bool:
    return not verdict.startswith((WRONG, "refused"))


def _verdict(model: Model, column: Column) -> str:
    """Of a compiler that is TOGETHER's: where the operator is placed, before it is asked."""
    try:
        built = model.built(column.target(), column.width)
        where = placement(built)
        if column.target().backend == "openvino":
            return where
        if column.target().backend == "iree":
            return where if built.tflite else WRONG
        found, where = RUNNERS[column.target().backend](built, model, where)
        wrong = Measured(model, built, column).wrong(found)
    except PipelineError as error:
        return refusal(error, model)
    except Exception as error:  # noqa: BLE001  # a traceback is a verdict too
        return f"{WRONG}: traceback of {type(error).__name__}: {str(error)[:160]}"
    return f"{WRONG}: {wrong}" if wrong else where


Run = Callable[[Built, Model, str], tuple[np.ndarray, str]]


def _plainly(run: Callable[[Built, Model], np.ndarray]) -> Run:
    return lambda built, model, where: (run(built, model), where)


def _by_onnxruntime(built: Built, model: Model, where: str) -> tuple[np.ndarray, str]:
    found = run_onnx(built, model)
    data = onnx_file(built.graph, "onnx")
    return found, "float" if where != "float" and in_float(data, built) else where


RUNNERS: dict[str, Run] = {
    "hybrid": _plainly(run_hybrid),
    "tflite": _plainly(run_tflite),
    "vela": _plainly(run_tflite),
    "onnx": _by_onnxruntime,
}


def _together(models: dict[str, Model], column: Column, telling: Telling) -> dict[Cell, str]:
    """As one file; where that fails, those that the error names and the rest, or each half."""
    if not models:
        return {}
    prefixes = {f"c{at}": name for at, name in enumerate(models)}
    builds = {n: model.built(column.target(), column.width) for n, model in models.items()}
    telling([(name, column.name) for name in models])
    try:
        whole = united({prefix: builds[name] for prefix, name in prefixes.items()})
        return COMPILERS[column.target().backend](whole, prefixes, models, builds, column)
    except PipelineError as error:
        if len(models) == 1:
            ((name, model),) = models.items()
            return {(name, column.name): refusal(error, model)}
        said = str(error)
    except Exception as error:  # noqa: BLE001
        if len(models) == 1:
            why = f"{WRONG}: traceback of {type(error).__name__}: {str(error)[:160]}"
            return {(next(iter(models)), column.name): why}
        said = str(error)
    blamed = {name for prefix, name in prefixes.items() if f"{prefix}/" in said}
    names = list(models)
    parts = [names[: len(names) // 2], names[len(names) // 2 :]]
    if 0 < len(blamed) < len(names):
        parts = [[name] for name in blamed] + [[name for name in names if name not in blamed]]
    made = [_together({name: models[name] for name in part}, column, telling) for part in parts]
    return {cell: verdict for each in made for cell, verdict in each.items()}


def _by_iree(whole, prefixes, models, builds, column) -> dict[Cell, str]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.vmfb"
        file.write_bytes(compiled(whole.program, whole.graph, column.target(), {}))
        session = IreeSession(file)
        fed = {}
        for prefix, name in prefixes.items():
            fed |= as_fed(session, models[name], f"{prefix}/")
        given = dict(zip(session.output_names, session.run(None, fed), strict=True))
    return _measured(given, prefixes, models, builds, column)


def _by_openvino(whole, prefixes, models, builds, column) -> dict[Cell, str]:
    import openvino

    data = compiled(whole.program, whole.graph, column.target(), {})
    fed = {f"{p}/{key}": x for p, name in prefixes.items() for key, x in models[name].feeds[0].items()}
    with TemporaryDirectory() as folder:
        zipfile.ZipFile(io.BytesIO(data)).extractall(folder)
        run = openvino.Core().compile_model(f"{folder}/model.xml", "CPU")
        given = {made.get_any_name(): np.array(x) for made, x in run(fed).items()}
    return _measured(given, prefixes, models, builds, column)


def _measured(given, prefixes, models, builds, column) -> dict[Cell, str]:
    found: dict[Cell, str] = {}
    for prefix, name in prefixes.items():
        (output,) = builds[name].program.outputs
        made = as_meant(given[f"{prefix}/{output}"], models[name])
        wrong = Measured(models[name], builds[name], column).wrong(made)
        where = placement(builds[name])
        found[name, column.name] = f"{WRONG}: {wrong}" if wrong else where
    return found


def _by_vela(whole, prefixes, models, builds, column) -> dict[Cell, str]:
    names = on_the_cpu(whole.tflite, column.target())
    found: dict[Cell, str] = {}
    for prefix, name in prefixes.items():
        where = placement(builds[name])
        left = any(tensor.startswith(f"{prefix}/") for tensor in names)
        found[name, column.name] = f"{where} on CPU" if left and "float" not in where else where
    return found


COMPILERS = {"iree": _by_iree, "openvino": _by_openvino, "vela": _by_vela}
