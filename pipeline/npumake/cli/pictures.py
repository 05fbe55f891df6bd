"""The proposal of `npumake new --images`, from a model and a folder of pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from npumake.cli.model_file import ModelFiles
from npumake.cli.open_sizes import closed_graph, closed_inputs
from npumake.errors import ProjectError

if TYPE_CHECKING:
    import numpy as np

    from npumake.cli.template import TemplateInput
    from npumake.graph import Graph
    from npumake.recognition.facts import ModelFacts
    from npumake.recognition.proposal import Proposal
    from npumake.recognition.recognized import Step

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")
# Formats that are not read: a person who has them expects that their pictures calibrate too.
UNREAD = (".webp", ".gif", ".tif", ".tiff", ".avif", ".heic", ".heif", ".jfif", ".jp2")
ANY = "*.[jJpPbB][pPnNmM]*"  # fits all SUFFIXES, and no other file of a folder of pictures
NO_PICTURE = "--images is for a model with one input of 1 or 3 channels; leave it out"


class Surveyed(NamedTuple):
    """The inputs with fixed shapes, and the proposal for the picture input."""

    inputs: Sequence[TemplateInput]
    facts: ModelFacts
    proposal: Proposal


class PictureFiles(NamedTuple):
    """The pictures of a folder, and the pattern that names them all, below it."""

    folder: Path
    pattern: str
    files: tuple[Path, ...]
    unread: tuple[Path, ...] = ()  # of other formats


def picture_files(folder: Path) -> PictureFiles:
    """The pictures below `folder`, sorted. Raises ProjectError without any."""
    from npumake.project.files import pattern_files

    if not folder.is_dir():
        raise ProjectError("no such folder", str(folder), "--images is a folder of pictures")
    if set(str(folder)) & set("*?["):
        raise ProjectError("a folder with *, ? or [ in its name", str(folder), "rename it")
    files = [Path(p) for _, p in pattern_files(folder, "**")]
    pictures = [file for file in files if file.suffix.lower() in SUFFIXES]
    unread = tuple(file for file in files if file.suffix.lower() in UNREAD)
    if not pictures:
        others = f", {unread_words(unread)}" if unread else ""
        message = f"the folder holds no picture that is read{others}"
        raise ProjectError(message, str(folder), f"pictures end in {', '.join(SUFFIXES)}")
    suffixes = {file.suffix for file in pictures}
    last = f"*{suffixes.pop()}" if len(suffixes) == 1 else ANY
    is_flat = {file.parent for file in pictures} == {folder}
    return PictureFiles(folder, last if is_flat else f"**/{last}", tuple(pictures), unread)


def unread_words(unread: Sequence[Path]) -> str:
    """The number of pictures that are left out, with their formats."""
    suffixes = ", ".join(sorted({file.suffix.lower() for file in unread}))
    return f"{len(unread)} of a format that is not read ({suffixes})"


def surveyed(model_files: ModelFiles, graph: Graph, pictures: Sequence[Path]) -> Surveyed:
    """Raises PipelineError, and ProjectError for a model that takes no picture."""
    from npumake.graph import shape
    from npumake.recognition.facts import facts_of, obstacle
    from npumake.recognition.families import family_of
    from npumake.recognition.measured import usable
    from npumake.recognition.proposal import proposal
    from npumake.recognition.sizes import preferred_sizes

    data = model_files.model.read()
    inputs = closed_inputs(model_files, graph, preferred_sizes(graph))
    shapes = {input_.name: input_.shape for input_ in inputs}
    closed = closed_graph(model_files, shapes)
    facts = facts_of(model_files.model.name, data, graph, closed)
    if facts is None:
        obstacles = ", ".join(
            f"`{value.name}` {list(shape(value))} {obstacle(value)}".rstrip()
            for value in closed.inputs
        )
        message = f"the model takes no picture that --images can feed: {obstacles}"
        raise ProjectError(message, model_files.model.path, NO_PICTURE)
    _, family = family_of(facts)
    count = usable(len(pictures), facts) if len(inputs) == 1 else 0
    chosen = spread(pictures, count)
    fitted = [fitted_picture(file, facts, family.resize) for file in chosen]
    return Surveyed(inputs, facts, proposal(facts, fitted))


def spread(files: Sequence[Path], count: int) -> list[Path]:
    """`count` of the files, spread evenly."""
    return [files[index * len(files) // count] for index in range(count)]


def fitted_picture(file: Path, facts: ModelFacts, steps: Sequence[Step]) -> np.ndarray:
    """(height, width, channels) of the input's size, 0..255. Raises ProjectError."""
    import numpy as np

    from npumake.data.pictures import pixels
    from npumake.data.transforms import transformed
    from npumake.project.reader import built
    from npumake.project.sections import Files
    from npumake.runtime.picture import read

    mode = "RGB" if facts.image.channels > 1 else "L"
    section: Any = built(Files, {"files": ".", "transforms": [step.document for step in steps]})
    image = pixels(read(file), file.name, mode)
    image = transformed(image, section.transforms, facts.image.size, "transforms", str(file))
    return np.asarray(image, np.float64).reshape(*facts.image.size, facts.image.channels)


def relative_pattern(pictures: PictureFiles, directory: Path) -> str:
    """The pattern of the pictures, as the project in `directory` names them."""
    start = os.path.relpath(os.path.abspath(pictures.folder), os.path.abspath(directory))
    return f"{Path(start).as_posix()}/{pictures.pattern}"
