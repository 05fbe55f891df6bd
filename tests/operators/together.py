"""TOGETHER: compilers that take a second, and of many cases as the outputs of one model no more.

A model of several that a compiler refuses is taken apart: those that its error names and the rest,
or each half, until one case stands alone and gets the error that its user would.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from npumake.bundle.archive import zipped
from npumake.compilers import backends
from npumake.compilers.flatfile import written
from npumake.compilers.vela import ESTIMATE
from npumake.errors import PipelineError
from npumake.runtime.iree import IreeSession
from npumake.runtime.openvino import AS_WRITTEN
from operators.builds import Built, Model, united
from operators.runs import as_fed, as_meant
from operators.truth import WRONG, Column, Measured, placement, refusal, traceback

Cell = tuple[str, str]
Telling = Callable[[Collection[Cell]], None]


@dataclass(frozen=True)
class Several:
    """Cases in one model: the name of each by the prefix that its tensors have in it."""

    prefixes: Mapping[str, str]
    models: Mapping[str, Model]
    builds: Mapping[str, Built]
    column: Column

    @property
    def whole(self) -> Built:
        parts = {prefix: self.builds[name] for prefix, name in self.prefixes.items()}
        return united(parts) if len(parts) > 1 else parts[""]

    def file(self) -> bytes:
        """As a build makes it; of several without the search for the node that is to blame."""
        whole, target = self.whole, self.column.target()
        if len(self.models) == 1 or target.backend not in backends.BACKENDS:
            return backends.built(whole.program, whole.graph, target, {})
        model = backends.model_for(target.backend, whole.program, whole.graph)
        made, members = backends.BACKENDS[target.backend](written(*model), target)
        return made + zipped(members)

    def judged(self, given: Mapping[str, np.ndarray]) -> dict[Cell, str]:
        """By the outputs of the whole model."""
        found: dict[Cell, str] = {}
        for prefix, name in self.prefixes.items():
            model, built = self.models[name], self.builds[name]
            (output,) = built.program.outputs
            made = given[f"{prefix}{output}"]
            made = made if self.column.target().backend == "openvino" else as_meant(made, built)
            wrong = Measured(model, built, self.column).wrong(made)
            found[name, self.column.name] = f"{WRONG}: {wrong}" if wrong else placement(built)
        return found


def together(models: Mapping[str, Model], column: Column, telling: Telling) -> dict[Cell, str]:
    """The verdicts of cases that are all built for the target."""
    if not models:
        return {}
    prefixes = {f"c{at}/" if len(models) > 1 else "": name for at, name in enumerate(models)}
    builds = {name: model.built(column.target(), column.width) for name, model in models.items()}
    telling([(name, column.name) for name in models])
    try:
        return TOGETHER[column.target().backend](Several(prefixes, models, builds, column))
    except Exception as error:  # noqa: BLE001  # a traceback is a verdict too
        if len(models) == 1:
            ((name, model),) = models.items()
            ours = isinstance(error, PipelineError)
            return {(name, column.name): refusal(error, model) if ours else traceback(error)}
        said = str(error)
    blamed = [name for prefix, name in prefixes.items() if prefix in said]
    made = [
        together({name: models[name] for name in part}, column, telling)
        for part in _apart(list(models), blamed)
    ]
    return {cell: verdict for each in made for cell, verdict in each.items()}


def _apart(names: list[str], blamed: list[str]) -> list[list[str]]:
    if 0 < len(blamed) < len(names):
        return [*([name] for name in blamed), [name for name in names if name not in blamed]]
    return [names[: len(names) // 2], names[len(names) // 2 :]]


def _by_iree(several: Several) -> dict[Cell, str]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.vmfb"
        file.write_bytes(several.file())
        session = IreeSession(file)
        fed: dict[str, np.ndarray] = {}
        for prefix, name in several.prefixes.items():
            fed |= as_fed(several.builds[name], several.models[name], prefix)
        given = dict(zip(session.output_names, session.run(None, fed), strict=True))
    return several.judged(given)


def _by_openvino(several: Several) -> dict[Cell, str]:
    import openvino

    fed = {
        f"{prefix}{key}": x
        for prefix, name in several.prefixes.items()
        for key, x in several.models[name].feeds[0].items()
    }
    with TemporaryDirectory() as folder:
        zipfile.ZipFile(io.BytesIO(several.file())).extractall(folder)
        run = openvino.Core().compile_model(f"{folder}/model.xml", "CPU", AS_WRITTEN)
        given = {name: np.array(x) for made, x in run(fed).items() for name in made.get_names()}
    return several.judged(given)


def _by_vela(several: Several) -> dict[Cell, str]:
    """Where Vela places them: before it the file was run."""
    with zipfile.ZipFile(io.BytesIO(several.file())) as members:
        layers = json.loads(members.read(ESTIMATE))["layers"]
    left = [str(layer["Name"]) for layer in layers if layer["Target"] != "NPU"]
    found: dict[Cell, str] = {}
    for prefix, name in several.prefixes.items():
        where = placement(several.builds[name])
        on_cpu = "float" not in where and any(tensor.startswith(prefix) for tensor in left)
        found[name, several.column.name] = f"{where} on CPU" if on_cpu else where
    return found


TOGETHER: Mapping[str, Callable[[Several], dict[Cell, str]]] = {
    "iree": _by_iree,
    "openvino": _by_openvino,
    "vela": _by_vela,
}
