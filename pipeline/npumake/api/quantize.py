"""quantize: a model and samples to a quantized model, without a project on the disk.

It writes a temporary project and builds it, so that the results are those of a project.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from npumake.api.build import Progress, build
from npumake.api.feeds import SampleSet, feeds_of
from npumake.api.results import TargetResult
from npumake.api.table import Table
from npumake.cli.model_file import WEIGHTS, ModelFiles, held_files
from npumake.debug.compared import Comparison
from npumake.engine.port import Port
from npumake.errors import PipelineError, Place, ProjectError
from npumake.frontends import read_model
from npumake.graph import Graph, dtype
from npumake.lifetime.temporaries import temporary_folder
from npumake.runtime.session import Session


class ModelProto(Protocol):
    """The part of onnx.ModelProto that this module uses."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802  # protobuf's name


Model = str | Path | bytes | ModelProto
STAGES = ("optimized_float", "calibrated", "quantized")  # kept as ONNX


@dataclass(frozen=True)
class QuantizedModel:
    """A compiled model in memory, the ONNX models of the stages before it, and its tables.

    `stages` holds ONNX bytes by name: optimized_float; calibrated, with the thresholds; quantized,
    with Q/DQ nodes.
    """

    target: str
    compiled: bytes
    suffix: str
    stages: Mapping[str, bytes]
    outputs: Table
    nodes: Table
    comparison: Comparison = field(repr=False)
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> Path:
        """Writes the compiled file, or the ONNX of the quantized stage for a path `*.onnx` of a
        target that compiles to something else. Raises ProjectError for another suffix."""
        path = Path(path)
        if path.suffix == self.suffix:
            path.write_bytes(self.compiled)
        elif path.suffix == ".onnx":
            path.write_bytes(self.stages["quantized"])
        else:
            hint = f"{self.suffix} for the file that {self.target} runs, .onnx for the Q/DQ model"
            raise ProjectError(f"the model cannot be saved as `{path.suffix}`", str(path), hint)
        return path

    def session(self, stage: str = "compiled", **options: Any) -> Session:
        """Runs the compiled file or the ONNX of a stage, with the options of `npumake.Session`.

        Raises GraphError for a file that only its chip runs, KeyError for an unknown stage.
        """
        is_compiled = stage == "compiled"
        with temporary_folder() as folder:
            file = folder / f"{stage}{self.suffix if is_compiled else '.onnx'}"
            file.write_bytes(self.compiled if is_compiled else self.stages[stage])
            return Session(file, **options)

    def _repr_html_(self) -> str:
        return self.outputs._repr_html_()


def quantize(
    model: Model,
    samples: SampleSet,
    *,
    target: str = "rdk-x5",
    method: str | None = None,
    sections: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> QuantizedModel:
    """Calibrates `model` on samples, quantizes and compiles it for `target`.

    `model` is a file of any known format, the bytes of an ONNX file, or an onnx.ModelProto.
    `samples` are inputs of the float model: an array or a mapping by input, per sample or with a
    leading axis of samples. `method` is that of `calibration:`, None for a project's default.
    `sections` are further keys of a project.yaml, merged with these: `{"quantization":
    {"per_channel": False}}`, or `{"data": {"image": {"allow": ["few"]}}}`. `progress` is called
    after each stage.

    >>> import numpy as np
    >>> import npumake
    >>> pixels = np.random.default_rng(0).uniform(0, 1, (8, 1, 1, 8, 8)).astype(np.float32)
    >>> quantized = npumake.quantize("projects/digits/model.onnx", pixels, target="ara240",
    ...                              method="max")
    >>> quantized.outputs["logits"]["cosine"] > 0.99
    True
    >>> quantized.session().run(None, {"image": pixels[0]})[0].shape
    (1, 10)

    Raises PipelineError, for samples that do not fit and for errors of a stage.
    """
    with temporary_folder() as folder:
        files = _model_files(model, folder)
        feeds = _feeds(files, samples, (sections or {}).get("inputs", {}))
        document = _document(files, feeds, target, method, sections or {})
        _write(folder / "model", files, feeds, document)
        try:
            result = build(folder / "model", [target], progress=progress)
        except PipelineError as error:
            raise _without_place(error, folder) from error.__cause__
        return _quantized(result[target], result.notes)


def _model_files(model: Model, folder: Path) -> ModelFiles:
    if isinstance(model, str | Path):
        return held_files(Path(model), None)
    data = model if isinstance(model, bytes) else model.SerializeToString()
    file = folder / "model.onnx"
    file.write_bytes(data)
    return held_files(file, None)


def _feeds(
    files: ModelFiles, samples: SampleSet, inputs: Mapping[str, Any]
) -> list[dict[str, np.ndarray]]:
    """The samples by input. `inputs` is the section; what its `value` freezes is not fed."""
    graph = read_model(files.model.read(), files.model.name, files.weights)
    frozen = {name for name, keys in inputs.items() if keys and "value" in keys}
    feeds = feeds_of(samples, [port for port in _ports(graph) if port.name not in frozen])
    if not feeds:
        raise ProjectError("there are no samples to calibrate on", "samples")
    return feeds


def _ports(graph: Graph) -> list[Port]:
    """The inputs; an open dimension takes the size of the samples."""
    ports = []
    for value in graph.inputs:
        sizes = [dim if isinstance(dim, int) else None for dim in value.shape or ()]
        ports.append(Port(str(value.name), sizes, f"tensor({dtype(value)})"))
    return ports


def _document(
    files: ModelFiles,
    feeds: Sequence[Mapping[str, np.ndarray]],
    target: str,
    method: str | None,
    sections: Mapping[str, Any],
) -> dict[str, Any]:
    """The project's document, `sections` merged over it."""
    names = list(feeds[0])
    folders = [f"samples/{index}" for index in range(len(names))]
    document: dict[str, Any] = {
        "model": {"path": files.model.name},
        "inputs": {name: {"shape": list(feeds[0][name].shape)} for name in names},
        "data": {
            name: {"files": f"{folder}/*.npy"} for name, folder in zip(names, folders, strict=True)
        },
        "targets": [target],
    }
    if files.pattern:
        document["model"]["weights"] = files.pattern
    if method is not None:
        document["calibration"] = {"method": method}
    return _merged(document, sections)


def _merged(document: dict[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged, other values replaced, as in the YAML of a variant."""
    merged = dict(document)
    for name, value in sections.items():
        below = merged.get(name)
        is_merged = isinstance(below, dict) and isinstance(value, Mapping)
        merged[name] = _merged(below, value) if is_merged and below is not None else value
    return merged


def _write(
    project: Path,
    files: ModelFiles,
    feeds: Sequence[Mapping[str, np.ndarray]],
    document: Mapping[str, Any],
) -> None:
    project.mkdir()
    (project / files.model.name).write_bytes(files.model.read())
    for file in files.weights:
        path = project / WEIGHTS / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.read())
    for index, name in enumerate(feeds[0]):
        folder = project / "samples" / str(index)
        folder.mkdir(parents=True)
        for number, feed in enumerate(feeds):
            np.save(folder / f"{number:06}.npy", feed[name])
    text = json.dumps(document)  # JSON is YAML
    (project / "project.yaml").write_text(text, encoding="utf-8")


def _without_place(error: PipelineError, folder: Path) -> PipelineError:
    """The error without its place in the temporary project."""
    if isinstance(error.where, Place) or str(folder) in str(error.where):
        error.where = None
    return error


def _quantized(result: TargetResult, notes: tuple[str, ...]) -> QuantizedModel:
    return QuantizedModel(
        result.name,
        result.compiled.read_bytes(),
        result.compiled.suffix,
        {stage: result.artifacts[stage].read_bytes() for stage in STAGES},
        result.outputs,
        result.nodes,
        result.comparison,
        (*notes, *result.comparison.notes),
    )
