"""A model file of the command line, with the files that hold its weights."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from npumake.digest import of_file
from npumake.errors import GraphError, ProjectError
from npumake.project.files import SourceFile, refuse_huge

WEIGHTS = "weights"  # the project's folder for external weights


class ModelFiles(NamedTuple):
    """A model's file and the files of its external weights."""

    model: SourceFile
    weights: tuple[SourceFile, ...]

    @property
    def pattern(self) -> str:
        """The project's pattern for the weights; empty without them."""
        return f"{WEIGHTS}/**" if self.weights else ""


def held_files(model: Path, weights: Path | None) -> ModelFiles:
    """The model's files. Default weights: the .caffemodel beside a .prototxt, or the files that
    an .onnx names."""
    from npumake.graph import files_beside

    if weights is None and model.suffix.lower() == ".prototxt":
        twin = model.with_suffix(".caffemodel")
        weights = twin if twin.is_file() else None
    if weights is not None:
        return ModelFiles(_file(model, model.name), (_file(weights, weights.name),))
    file = _file(model, model.name)
    named = files_beside(file.read()) if model.suffix.lower() == ".onnx" else ()
    return ModelFiles(file, tuple(_beside(model.parent, name) for name in named))


def _beside(folder: Path, name: str) -> SourceFile:
    """A file the model names. Raises GraphError for a link that leads elsewhere."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        message = f"the model's weights `{name}` are a link to outside its folder"
        raise GraphError(message, str(path), "copy the file to where the link is")
    return _file(path, name)


def _file(path: Path, name: str) -> SourceFile:
    refuse_huge(path)
    try:
        return SourceFile(name, str(path), of_file(path))
    except OSError as error:
        raise ProjectError(f"cannot read the model: {error.strerror}", str(path)) from None
