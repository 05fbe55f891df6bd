"""Quantized models beside those of other quantizers, on the same pictures.

    python benchmarks/beside.py [yolox mobilenet] [--target rdk-x5] [--nncf PYTHON]
                                [--modelopt PYTHON] [--quark PYTHON] [--limit MINUTES]
                                [--without "Quark, AdaRound"] [--store FOLDER] [--print]

Classifiers: 100 pictures of imagenet500 calibrate, 400 others measure. Detectors: every second
picture of coco128 calibrates, the others measure. All run in stock onnxruntime. The activations of
ara240 are asymmetric. Those of rdk-x5 are symmetric by default, and in all rows here; peers.py says
how each peer is asked for them.

Rows of 8 bits alone stand apart from mixed ones. In each part every other row has the points by
which ours, `best`, is ahead of it: positive where npumake is closer to the float model. Intervals
are those of a paired bootstrap (paired.py). Quantized files are kept in the store and taken from
there: a store belongs to one state of npumake. Figures are kept in benchmarks/beside_TARGET.json;
the page is written from them (beside_page.py).
Models and pictures are beside the repository, or in the folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from beside_page import TARGETS, TASKS, rows_of
from closest import BEST, ours
from detectors import Bench, answered
from gallery import BESIDE as RESULTS
from gallery import write_page
from heads import pictures, total
from paired import Totals, interval, resampled
from peers import Made, add_peers, left_in_float, peers_of, versions
from recovery import MODELS, images

from npumake.engine.ort import Feeds, OrtSession
from npumake.errors import GraphError
from npumake.graph import Graph
from npumake.graph.qdq import codes_dtype, is_qdq
from npumake.project.sections import Calibration, Quantization
from npumake.quant.precision.int16_share import SIXTEEN_BITS, int16_share
from npumake.quant.qdq.insert import DEFAULT
from npumake.targets.reader import read_target
from npumake.targets.target import Target

CALIBRATE = 100
FLOAT = "float"
Figures = dict[str, Any]


class Task(Protocol):
    """A model with the pictures that calibrate and those that measure."""

    trained: bytes
    graph: Graph  # as the chip takes it

    def calibrating(self, own: bool) -> Sequence[Feeds]:
        """For the chip's graph if `own`, for the trained one otherwise."""
        ...

    def scores(self, model: bytes, own: bool) -> list[Any]:
        """Of each picture that measures."""
        ...

    def total(self, scores: Sequence[Any]) -> np.ndarray:
        """The task's figures (F,), of any pictures."""
        ...


class Detector:
    def __init__(self, name: str) -> None:
        self._bench = Bench(name)
        self.trained, self.graph = self._bench.newer, self._bench.graph

    @cached_property
    def _meant(self) -> list[Any]:
        return answered(self._bench.bytes, self._bench.feeds(trained=True, measured=True))

    def calibrating(self, own: bool) -> Sequence[Feeds]:
        return self._bench.feeds(trained=not own, measured=False)

    def scores(self, model: bytes, own: bool) -> list[Any]:
        said = answered(model, self._bench.feeds(trained=not own, measured=True))
        return list(pictures(self._bench.head, self._bench.files, said, self._meant))

    def total(self, scores: Sequence[Any]) -> np.ndarray:
        return total(self._bench.head, scores)


class Classifier:
    """Right or wrong for ImageNet's classes, and the float model's class or another."""

    def __init__(self, name: str) -> None:
        model = MODELS[name]
        self.graph = model.read()
        self.trained = self.graph.to_bytes()
        feeds, classes = images(model, self.graph)
        calibrating = range(0, 2 * CALIBRATE, 2)
        self._shown = [feeds[index] for index in calibrating]
        measuring = [index for index in range(len(feeds)) if index not in calibrating]
        self._held_out = [feeds[index] for index in measuring]
        self._labels = (
            self._classes(self.trained)
            if model.background is None
            else np.array([classes[index] + model.background for index in measuring])
        )

    def _classes(self, model: bytes) -> np.ndarray:
        session = OrtSession(model)
        return np.array([session.run(None, feed)[0].argmax() for feed in self._held_out])

    @cached_property
    def _meant(self) -> np.ndarray:
        return self._classes(self.trained)

    def calibrating(self, own: bool) -> Sequence[Feeds]:
        return self._shown

    def scores(self, model: bytes, own: bool) -> list[Any]:
        classes = self._classes(model)
        return list(np.stack([classes == self._labels, classes == self._meant], 1))

    def total(self, scores: Sequence[Any]) -> np.ndarray:
        return np.mean(scores, axis=0)


@dataclass(frozen=True)
class Way:
    title: str
    mixed: bool
    own: bool
    make: Made


def ways(task: Task, options: argparse.Namespace) -> Iterator[Way]:
    """Of each part our `best` comes first."""
    target = read_target(options.target)
    symmetric = target.activations.symmetric
    plain, best = (
        replace(calibration, symmetric=symmetric or None)  # None: the search has the choice
        for calibration in (Calibration("default"), BEST)
    )
    of_target = partial(ours, task.graph, task.calibrating(own=True))
    own, narrow = partial(of_target, target), partial(of_target, in_8_bits(target))
    yield Way("best", False, True, partial(narrow, best, Quantization(most_int16=0.0)))
    yield Way("default", False, True, partial(own, plain, DEFAULT))
    yield Way("best, mixed", True, True, partial(own, best, Quantization(most_int16=0.1)))
    for title, make in peers_of(options, task.trained, task.calibrating(own=False), symmetric):
        if title not in options.without:
            yield Way(title, title.endswith("A16"), False, make)


def in_8_bits(target: Target) -> Target:
    """Without the int16 that a chip's own tool has for what leaves the NPU: no budget limits it."""
    return replace(target, form=target.form and replace(target.form, leaving="int8"))


def stored(way: Way, name: str, options: argparse.Namespace) -> tuple[bytes, float | None]:
    """The quantized model and the CPU minutes that it took, if known, from the store where it is
    there."""
    if options.store is None:
        return timed(way)
    file: Path = options.store / options.target / f"{name}, {way.title}.onnx"
    minutes = file.with_suffix(".minutes")
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        model, took = timed(way)
        minutes.write_text(f"{took:.2f}")
        file.write_bytes(model)
    return file.read_bytes(), float(minutes.read_text()) if minutes.is_file() else None


def timed(way: Way) -> tuple[bytes, float]:
    """The quantized model and the CPU minutes that it took."""
    before = sum(os.times()[:4])  # with those of child processes
    model = way.make()
    return model, round((sum(os.times()[:4]) - before) / 60, 2)


def measure(name: str, options: argparse.Namespace) -> Figures:
    """The figures of one model, row by row."""
    is_detector = TASKS[name].is_detector
    task: Task = Detector(name) if is_detector else Classifier(name)
    scores = {FLOAT: task.scores(task.trained, own=False)}
    rows: list[Figures] = []
    for way in ways(task, options):
        row: Figures = {"tool": way.title, "mixed": way.mixed}
        rows.append(row)
        try:
            model, minutes = stored(way, name, options)
            scores[way.title] = task.scores(model, way.own)
            row |= {"float": floats_of(model), "int16": share_of(model), "minutes": minutes}
            row["mixed"] = way.mixed or has_int16(model)
        except (RuntimeError, ValueError, GraphError) as error:  # a peer's failure is a row too
            row["error"] = str(error)[:100]
        print(name, row, flush=True)
    totals = resampled(scores, task.total)
    for row in rows:
        if row["tool"] in totals:
            reference = "best, mixed" if row["mixed"] else "best"
            row |= compared(name, totals, row["tool"], reference)
    whole = [round(float(value), 4) for value in totals[FLOAT][0]]
    return {
        "pictures": len(scores[FLOAT]),
        "float": whole,
        "versions": versions(options),
        "rows": rows,
    }


def compared(name: str, totals: dict[str, Totals], tool: str, reference: str) -> Figures:
    """Per column the figure of a tool, and how far the reference is ahead of it."""
    figures, ahead = [], []
    for number, column in enumerate(TASKS[name].columns):
        floats, made, best = (totals[key][:, number] for key in (FLOAT, tool, reference))
        figures.append(interval(column.figure(made, floats)))
        ahead.append(interval(column.ahead(best, made, floats)) if tool != reference else None)
    return {"figures": figures, "ahead": ahead}


def floats_of(model: bytes) -> str:
    """What computes in float, as text."""
    counts = left_in_float(model).items()
    return ", ".join(f"{count} {operator}" for operator, count in sorted(counts)) or "nothing"


def share_of(model: bytes) -> float:
    """Of int16; without any, nothing needs the shapes, which Q/DQ of another domain hide."""
    return int16_share(Graph.from_bytes(model).with_shapes()) if has_int16(model) else 0.0


def has_int16(model: bytes) -> bool:
    """Whether any tensor has codes of 16 bits, the outputs included."""
    nodes = Graph.from_bytes(model).nodes()
    return any(codes_dtype(node) in SIXTEEN_BITS for node in nodes if is_qdq(node))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(TASKS))
    parser.add_argument("--target", choices=TARGETS, default=next(iter(TARGETS)))
    parser.add_argument("--without", nargs="*", default=[], metavar="ROW")
    parser.add_argument("--store", type=Path, help="folder of quantized files")
    parser.add_argument("--print", action="store_true", help="write nothing")
    add_peers(parser)
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # what onnxruntime's quantizer advises
    for name in options.models or TASKS:
        figures = measure(name, options)
        print("\n".join(rows_of(name, figures)), flush=True)
        if not options.print:
            write(options.target, name, figures)


def write(target: str, name: str, figures: Figures) -> None:
    """Adds the figures to RESULTS."""
    file = RESULTS[target]
    results = {**json.loads(file.read_text(encoding="utf-8")), name: figures}
    ordered = {task: results[task] for task in TASKS if task in results}
    file.write_text(f"{json.dumps(ordered, indent=1)}\n", encoding="utf-8")
    write_page()


if __name__ == "__main__":
    main()
