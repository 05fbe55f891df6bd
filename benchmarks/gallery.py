"""How accurate are the models of the gallery: float, int8 and compiled? Writes docs/accuracy.md.

    python benchmarks/gallery.py                       # all; some eight minutes of CPU time
    python benchmarks/gallery.py segmentation          # one; the others keep their figures
    python benchmarks/gallery.py --samples 40 --print  # fewer samples, and nothing is written

Each project is built in a folder of its own, for each chip that this machine can compile for and
run (gallery_artifacts.py). Its task.py draws samples that calibrated nothing and trained nothing,
and scores the outputs.

Intervals of figures, and of drops from float to compiled, are those of a paired bootstrap
(paired.py). Figures are kept in
benchmarks/gallery.json; the page is written from them (gallery_page.py).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from beside_page import TARGETS, sections
from gallery_artifacts import ARTIFACTS, REPO, Artifact, artifacts, build, targets_that_run
from gallery_page import SHOWN, draw, page, rows_of
from paired import interval, resampled

RESULTS = Path(__file__).with_suffix(".json")
BESIDE = {target: RESULTS.with_name(f"beside_{target}.json") for target in TARGETS}
PAGE = REPO / "docs" / "accuracy.md"

Figures = dict[str, Any]
Total = Callable[[Sequence[Any]], float]


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
        return any(self.project.glob("model.*")) or not (self.project / "fetch.py").is_file()

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
            ("image-classifier", 600, 128),
            ("vision-transformer", 600, 128),
            ("object-detector", 100, 128),
            ("face-detector", 100, 128),
            ("text-recognition", 300, 128),
            ("keyword-spotting", 300, 0),
            ("segmentation", 100, 128),
            ("super-resolution", 100, 128),
        )
    ),
)


def outputs(example: Example, artifact: Artifact, inputs: Sequence[np.ndarray]) -> list[Any]:
    """The output of an artifact for each input; of several a mapping by name."""
    name = artifact.input_name
    feeds = [{name: array.astype(np.float32) - example.offset} for array in inputs]
    return [
        arrays if len(arrays) > 1 else next(iter(arrays.values()))
        for arrays in artifact.outputs(feeds)
    ]


def measure(example: Example, samples: int, built: Path, targets: Sequence[str]) -> Figures:
    """Figures and intervals of each artifact and target of a built project."""
    task = example.load_task()
    inputs, truths = zip(*map(task.sample, range(min(samples, example.samples))), strict=True)
    figures: Figures = {"metric": task.METRIC, "samples": len(inputs), "targets": {}}
    known: dict[Path, list[Any]] = {}  # the float model is the same for all targets
    for target in targets:
        scores = {}
        for artifact in artifacts(built, target):
            if artifact.file not in known:
                pairs = zip(outputs(example, artifact, inputs), truths, strict=True)
                known[artifact.file] = [task.score(output, truth) for output, truth in pairs]
            scores[artifact.name] = known[artifact.file]
        figures["targets"][target] = bootstrap(scores, getattr(task, "total", mean))
    return figures


def mean(scores: Sequence[float]) -> float:
    return float(np.mean(scores))


def bootstrap(scores: Mapping[str, Sequence[Any]], total: Total) -> Figures:
    """[figure, 2.5th, 97.5th percentile over the resamples] of each artifact, and of the drops from
    float to what was compiled."""
    totals = resampled(scores, total)
    compiled = [name for name in ARTIFACTS if "compiled" in name and name in totals]
    drops = {f"drop, {name}": totals["float"] - totals[name] for name in compiled}
    return {name: interval(values) for name, values in {**totals, **drops}.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="all when none is named")
    parser.add_argument("--samples", type=int, default=sys.maxsize, help="no more of each")
    parser.add_argument("--print", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    targets = targets_that_run()
    for example in EXAMPLES:
        if not example.is_here:
            print(f"{example.name}: skipped, {example.folder}/fetch.py fetches its model")
        elif not arguments.examples or example.name in arguments.examples:
            begin = time.monotonic()
            with TemporaryDirectory() as folder:
                built = build(example.project, Path(folder), targets)
                figures = measure(example, arguments.samples, built, targets)
                print("\n".join(rows_of(figures)), flush=True)
                print(f"{example.name}: {time.monotonic() - begin:.0f} s", flush=True)
                if not arguments.print:
                    write(example, figures, built)


def write(example: Example, figures: Figures, built: Path) -> None:
    """Adds the figures to RESULTS, where a target that was not measured keeps its own."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    before = results.get(example.name, {}).get("targets", {})
    results[example.name] = {**figures, "targets": {**before, **figures["targets"]}}
    if example.folder.startswith("examples/"):
        draw_example(example, built)
    RESULTS.write_text(f"{json.dumps(results, indent=1)}\n", encoding="utf-8")
    write_page()


def write_page() -> None:
    """The page of all figures, those of beside.py too."""
    PAGE.write_text(whole_page(), encoding="utf-8")


def whole_page() -> str:
    results, *beside = (
        json.loads(file.read_text(encoding="utf-8")) for file in (RESULTS, *BESIDE.values())
    )
    return page(EXAMPLES, results, sections(dict(zip(BESIDE, beside, strict=True))))


def draw_example(example: Example, built: Path) -> None:
    """What the compiled file makes of the first samples, as result.png."""
    task = example.load_task()
    compiled = {artifact.name: artifact for artifact in artifacts(built, "rdk-x5")}["compiled"]
    inputs, truths = zip(*map(task.sample, range(SHOWN)), strict=True)
    shown = zip(inputs, outputs(example, compiled, inputs), truths, strict=True)
    draw(task, list(shown)).save(example.project / "result.png", optimize=True)


if __name__ == "__main__":
    main()
