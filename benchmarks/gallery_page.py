"""The page and the pictures of the gallery, from figures and samples; see gallery.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image, ImageDraw

COLUMNS = ("int8", "compiled", "best, compiled", "drop, compiled", "drop, best, compiled")
SHOWN, TILES_IN_ROW = 6, 3
CAPTION_HEIGHT, TILE_WIDTH = 14, 192  # pixels

Figures = Mapping[str, Any]


class Example(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def folder(self) -> str: ...

    @property
    def project(self) -> Path: ...


def page(examples: Sequence[Example], results: Mapping[str, Figures], beside: str) -> str:
    """docs/accuracy.md; `beside` is the part about other tools."""
    sections = [
        section(example, results[example.name]) for example in examples if example.name in results
    ]
    return TEXT.format(sections="\n\n".join(sections), beside=beside)


TEXT = """\
# Accuracy of the gallery, and beside other tools

`python benchmarks/gallery.py` writes the tables of the gallery. Each model was trained by a script
of this repository, and is measured on samples that neither trained nor calibrated it. Only the face
detector is a published model; its samples are views of one face.
[Other tools](#beside-other-tools) follow, on published models.

- **int8** is the Q/DQ graph in onnxruntime, calibrated by `max`. **compiled** is the compiled file.
  **best** is the variant with `calibration: {{recipe: best}}`, compiled: searched for ara240, with
  asymmetric activations, and for rdk-x5, whose activations are symmetric unless the search finds
  asymmetric ones closer. It may read 16 bits in a tenth of the multiply-accumulates; the others
  have 8 bits alone.
- A drop is the float figure less the compiled one, on the same samples. Brackets hold 95 %
  intervals by bootstrap. If the interval of a drop holds 0, no difference was measured.
- No figure is of a board. A `.hybrid` runs in npumake's runtime, a `.tflite` in LiteRT, a file for
  OpenVINO in OpenVINO on a CPU. For Ethos-U it is the `.tflite` that Vela was given.

{sections}

{beside}"""


def section(example: Example, figures: Figures) -> str:
    file = "README.md" if (example.project / "README.md").is_file() else "project.yaml"
    rows = "\n".join(rows_of(figures))
    any_float = next(iter(figures["targets"].values()))["float"]
    return (
        f"## {example.name}\n\n"
        f"[The project](../{example.folder}/{file}). {figures['metric']}, of {figures['samples']} "
        f"samples. Float: {with_interval(any_float)}.\n\n{rows}"
    )


def rows_of(figures: Figures) -> Iterator[str]:
    """The table of one example: a row for each chip."""
    head = ("chip", "int8", "compiled", "best", "drop, compiled", "drop, best")
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for target, row in figures["targets"].items():
        cells = [cell(name, row[name]) if name in row else "" for name in COLUMNS]
        yield f"| {' | '.join([target, *cells])} |"


def cell(name: str, figure: Sequence[float]) -> str:
    return with_interval(figure) if name.startswith("drop") else f"{figure[0]:.2f}"


def with_interval(figure: Sequence[float]) -> str:
    mean, low, high = figure
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def draw(task: Any, samples: Sequence[tuple[np.ndarray, Any, Any]]) -> Image.Image:
    """A sheet of samples: (input, output, truth) each, as the task draws and captions them."""
    tiles = [tile(task, *sample) for sample in samples]
    height = tiles[0].height
    rows = -(-len(tiles) // TILES_IN_ROW)
    sheet = Image.new("RGB", (TILES_IN_ROW * TILE_WIDTH, rows * height), "white")
    for number, image in enumerate(tiles):
        row, column = divmod(number, TILES_IN_ROW)
        sheet.paste(image, (column * TILE_WIDTH, row * height))
    return sheet


def tile(task: Any, array: np.ndarray, output: Any, truth: Any) -> Image.Image:
    """A sample with its caption below, TILE_WIDTH wide."""
    picture = Image.fromarray(task.picture(array, output, truth))
    width = TILE_WIDTH - 8
    height = round(picture.height * width / picture.width)
    image = Image.new("RGB", (TILE_WIDTH, height + CAPTION_HEIGHT + 8), "white")
    image.paste(picture.resize((width, height), Image.Resampling.NEAREST), (4, 4))
    ImageDraw.Draw(image).text((4, height + 6), task.caption(output, truth), "black")
    return image
