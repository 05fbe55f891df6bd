"""How accurate are the models of the gallery: float, int8 and compiled? Writes docs/accuracy.md.

    python benchmarks/gallery.py                       # all, some minutes
    python benchmarks/gallery.py segmentation          # one; the others keep their figures
    python benchmarks/gallery.py --samples 40 --print  # fewer samples, and nothing is written

Each project is built where it lies. Its task.py draws samples that calibrated nothing and trained
nothing, and scores the outputs. An interval is that of the mean, by 1,000 bootstrap resamples; the
drop is measured pair by pair, float against compiled, on the same samples.

Figures are kept in benchmarks/gallery.json; the page is written from them. A picture of the outputs
of the compiled file goes to the example's result.png.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from npumake.runtime import Session

REPO = Path(__file__).parents[1]
RESULTS = Path(__file__).with_suffix(".json")
PAGE = REPO / "docs" / "accuracy.md"
TARGETS = ("rdk-x5", "ara240")
ARTIFACTS = ("float", "int8", "compiled", "best, compiled")
RESAMPLES, SEED = 1000, 0
SHOWN, COLUMNS = 6, 3  # samples of a picture, and in a row
CAPTION_HEIGHT, SHOWN_WIDTH = 14, 192  # pixels

Figures = dict[str, Any]


@dataclass(frozen=True)
class Example:
    name: str
    folder: str  # of the project
    task: str  # the file that draws samples and scores outputs
    samples: int
    offset: int = 0  # what the chip is fed is pixel - offset

    @property
    def project(self) -> Path:
        return REPO / self.folder

    @property
    def is_here(self) -> bool:
        """Whether its model is: fetch.py of an example with a published one takes it from a
        package."""
        return any(self.project.glob("model.*"))

    def load_task(self) -> Any:
        specification = spec_from_file_location(f"task_of_{self.name}", REPO / self.task)
        assert specification is not None
        assert specification.loader is not None
        module = module_from_spec(specification)
        specification.loader.exec_module(module)
        return module


EXAMPLES = (
    Example("digits", "projects/digits", "examples/vision-transformer/task.py", 600, 128),
    *(
        Example(name, f"examples/{name}", f"examples/{name}/task.py", samples, offset)
        for name, samples, offset in (
            ("vision-transformer", 600, 128),
            ("text-recognition", 300, 128),
            ("keyword-spotting", 300, 0),
            ("segmentation", 100, 128),
            ("super-resolution", 100, 128),
            ("face-detector", 100, 128),
        )
    ),
)


def artifacts(project: Path, target: str) -> Iterator[tuple[str, Path]]:
    """(name of ARTIFACTS, file) of what a build left in out/."""
    out, hybrid = project / "out", f"{project.name}.{target}.hybrid"
    files = (
        out / "original_float.onnx",
        out / f"quantized.{target}.onnx",
        out / hybrid,
        out / "@best" / hybrid,
    )
    for name, file in zip(ARTIFACTS, files, strict=True):
        if file.is_file():
            yield name, file


def outputs(example: Example, file: Path, inputs: Sequence[np.ndarray]) -> Iterator[Any]:
    """The output of an artifact for each input; of several a mapping by name."""
    session = Session(file)
    (name,) = session.input_names
    for array in inputs:
        arrays = session.run(None, {name: array.astype(np.float32) - example.offset})
        named = dict(zip(session.output_names, arrays, strict=True))
        yield named if len(arrays) > 1 else arrays[0]


def measure(example: Example, samples: int) -> Figures:
    """Scores of each artifact and target, with their intervals; builds the project first."""
    build = [sys.executable, "-m", "npumake.cli.main", "build"]
    subprocess.run(build, cwd=example.project, check=True, stdout=subprocess.DEVNULL)
    task = example.load_task()
    inputs, truths = zip(*map(task.sample, range(min(samples, example.samples))), strict=True)
    figures: Figures = {"metric": task.METRIC, "samples": len(inputs), "targets": {}}
    for target in TARGETS:
        scores = {
            name: np.array(
                [
                    task.score(y, t)
                    for y, t in zip(outputs(example, file, inputs), truths, strict=True)
                ]
            )
            for name, file in artifacts(example.project, target)
        }
        rows: Figures = {name: interval(values) for name, values in scores.items()}
        last = [name for name in ARTIFACTS if name in scores][-1]
        rows["drop"] = interval(scores["float"] - scores[last])
        figures["targets"][target] = rows
    return figures


def interval(values: np.ndarray) -> list[float]:
    """Mean, and the 2.5th and 97.5th percentile of the means of resamples."""
    random = np.random.RandomState(SEED)
    rows = random.randint(0, len(values), (RESAMPLES, len(values)))
    low, high = np.percentile(values[rows].mean(1), [2.5, 97.5])
    return [round(float(value), 2) for value in (values.mean(), low, high)]


def page(results: Mapping[str, Figures]) -> str:
    """docs/accuracy.md."""
    head = ("model", "metric", "samples", "chip", *ARTIFACTS, "drop, 95 % interval")
    table = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for example in EXAMPLES:
        if example.name in results:
            table += rows_of(example, results[example.name])
    return TEXT.format(table="\n".join(table))


TEXT = """\
# Accuracy of the gallery

`python benchmarks/gallery.py` writes this page. Each row is a model that a script of this
repository trained, on samples that neither trained nor calibrated it. The face detector is a
published one, on views of one face.

- **int8** is the Q/DQ graph in onnxruntime, calibrated by `max`. **compiled** is the same in exact
  integers. **best** is the variant with `recipe: best`.
- The drop is that from float to the last column, sample by sample, with its 95 % interval by
  bootstrap. If the interval holds 0, no difference was measured.

{table}

Super-resolution is scored by its peak signal to noise ratio, and its drop is in dB. No figure is
of a board: `compiled` is the `.hybrid`, in the runtime of npumake.
"""


def rows_of(example: Example, figures: Figures) -> Iterator[str]:
    link = f"[{example.name}](../{example.folder}/{page_of(example)})"
    for target, row in figures["targets"].items():
        cells = [f"{row[name][0]:.2f}" if name in row else "" for name in ARTIFACTS]
        mean, low, high = row["drop"]
        cells.append(f"{mean:.2f} ({low:.2f} to {high:.2f})")
        facts = (link, figures["metric"], str(figures["samples"]), target)
        yield f"| {' | '.join([*facts, *cells])} |"


def page_of(example: Example) -> str:
    return "README.md" if (example.project / "README.md").is_file() else "project.yaml"


def draw(example: Example) -> None:
    """What the compiled file makes of the first samples, as result.png."""
    task = example.load_task()
    inputs, truths = zip(*map(task.sample, range(SHOWN)), strict=True)
    file = dict(artifacts(example.project, TARGETS[0]))["compiled"]
    answers = outputs(example, file, inputs)
    tiles = [tile(task, *row) for row in zip(inputs, answers, truths, strict=True)]
    height = tiles[0].height
    sheet = Image.new("RGB", (COLUMNS * SHOWN_WIDTH, SHOWN // COLUMNS * height), "white")
    for number, image in enumerate(tiles):
        row, column = divmod(number, COLUMNS)
        sheet.paste(image, (column * SHOWN_WIDTH, row * height))
    sheet.save(example.project / "result.png", optimize=True)


def tile(task: Any, array: np.ndarray, answer: np.ndarray, truth: Any) -> Image.Image:
    """A sample with its caption below, SHOWN_WIDTH wide."""
    picture = Image.fromarray(task.picture(array, answer, truth))
    width = SHOWN_WIDTH - 8
    height = round(picture.height * width / picture.width)
    image = Image.new("RGB", (SHOWN_WIDTH, height + CAPTION_HEIGHT + 8), "white")
    image.paste(picture.resize((width, height), Image.Resampling.NEAREST), (4, 4))
    ImageDraw.Draw(image).text((4, height + 6), task.caption(answer, truth), "black")
    return image


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="all when none is named")
    parser.add_argument("--samples", type=int, default=sys.maxsize, help="no more of each")
    parser.add_argument("--print", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    for example in EXAMPLES:
        if not example.is_here:
            print(f"{example.name}: skipped, {example.folder}/fetch.py fetches its model")
        elif not arguments.examples or example.name in arguments.examples:
            figures = measure(example, arguments.samples)
            print("\n".join(rows_of(example, figures)), flush=True)
            results[example.name] = figures
            if not arguments.print:
                write(example, results)


def write(example: Example, results: Mapping[str, Figures]) -> None:
    if example.folder.startswith("examples/"):
        draw(example)
    RESULTS.write_text(f"{json.dumps(results, indent=1)}\n", encoding="utf-8")
    PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
