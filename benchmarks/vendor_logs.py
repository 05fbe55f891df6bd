"""Compares our node tables row by row with a vendor's, from published logs.

    python benchmarks/vendor_logs.py [--oracle ../shared/oracle] [--only yolov8n] [--show 20]

`tables/NAME.json` is a table that a vendor's tool printed, `models/NAME.onnx.gz` the same graph
with random weights. Each model is planned with the settings of the log: nv12 for makertbin, the
march of the table, and the ranges of one random sample. A table without a row for the preprocessing
is from the checker, and compared with ours. One row per table:

    rows      rows in both over rows in either, by name
    unit      share of their rows that run on the same unit here
    subgraph  share of the rows in both with the same subgraph
    type      share of their rows with the same type string
    DataType  share of the rows in both with the same input type
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npumake.data.samples import Samples
from npumake.debug.compare import compare
from npumake.debug.model_check import check_model
from npumake.dialects.drobotics.keys import MARCHES
from npumake.engine.ort import Feeds
from npumake.graph import Graph, shape
from npumake.passes import optimized
from npumake.project.files import SourceFile
from npumake.project.paths import FilePath
from npumake.project.sections import Calibration, Input, ModelSection
from npumake.quant.calibration.observe import observe
from npumake.stages.calibrated import calibrated
from npumake.stages.original_float import original_float
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from npumake.targets.target import Target

ORACLE = Path(__file__).parents[2] / "shared" / "oracle"
NV12 = Input(type="rgb", fed_type="nv12", layout="NCHW", scale=1 / 255)
PERCENTILE = 0.99995  # what most logs select
LONGEST = 50  # characters of a name
PREPROCESS = "HZ_PREPROCESS_FOR_"
FIELDS = ("unit", "subgraph", "type", "DataType")
Row = Mapping[str, str]


@dataclass(frozen=True)
class Agreement:
    """Counts of rows; `same` by field."""

    theirs: int
    ours: int
    both: int
    same: Mapping[str, int]

    def __add__(self, other: Agreement) -> Agreement:
        same = {name: self.same[name] + other.same[name] for name in FIELDS}
        theirs, ours = self.theirs + other.theirs, self.ours + other.ours
        return Agreement(theirs, ours, self.both + other.both, same)

    @property
    def line(self) -> str:
        either = self.theirs + self.ours - self.both
        shares = [self.both / either]
        of_all = {"unit": self.theirs, "type": self.theirs}
        shares += [self.same[name] / (of_all.get(name) or self.both or 1) for name in FIELDS]
        return " ".join(f"{share:9.1%}" for share in shares)


def their_rows(table: Mapping[str, object]) -> dict[str, Row]:
    """By node, in order."""
    columns, rows = table["columns"], table["rows"]
    assert isinstance(columns, list)
    assert isinstance(rows, list)
    named = {"on": "unit", "DataType": "DataType"}
    return {
        row[0]: {named.get(c, c): cell for c, cell in zip(columns, row, strict=True)}
        for row in rows
    }


def checked_rows(graph: Graph, target: Target) -> dict[str, Row]:
    """As the checker has them, which is given no data."""
    return {
        row.node: {
            "unit": row.on,
            "subgraph": "--" if row.subgraph is None else f"id({row.subgraph})",
            "type": row.type,
            "DataType": row.dtype,
        }
        for row in check_model(graph, target).rows
    }


def our_rows(graph: Graph, samples: Samples, target: Target) -> dict[str, Row]:
    """As a build's comparison has them."""
    measured = observe(graph, samples)
    calibration = Calibration("max_percentile", PERCENTILE)
    found = recipe(graph, measured, samples, calibration, target)
    made = calibrated(graph, found, samples, target)
    compared = compare(graph, made, quantized(made, target), samples, target)
    return {
        row.node: {
            "unit": row.on,
            "subgraph": "--" if row.subgraph is None else f"id({row.subgraph})",
            "type": row.type,
            "DataType": row.dtype.partition("/")[0],
        }
        for row in compared.rows
    }


def printed(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The tool prints the end of a long name."""
    return {
        name if len(name) <= LONGEST else f"...{name[3 - LONGEST :]}": cells
        for name, cells in rows.items()
    }


def agreement(theirs: Mapping[str, Row], ours: Mapping[str, Row]) -> Agreement:
    both = theirs.keys() & ours.keys()
    same = {
        name: sum(theirs[row].get(name, ours[row][name]) == ours[row][name] for row in both)
        for name in FIELDS
    }
    return Agreement(len(theirs), len(ours), len(both), same)


def differences(theirs: Mapping[str, Row], ours: Mapping[str, Row]) -> Iterator[str]:
    """What differs, without the numbers in names."""
    for row, cells in theirs.items():
        kind = re.sub(r"\d+", "N", row.rpartition("/")[2])
        if row not in ours:
            yield f"missing  {kind}  {cells['type']} {cells['unit']}"
            continue
        for name in FIELDS:
            if name in cells and cells[name] != ours[row][name]:
                yield f"{name:8} {kind}  {cells[name]} is here {ours[row][name]}"
    for row in ours.keys() - theirs.keys():
        cells = ours[row]
        yield f"extra    {re.sub(chr(92) + 'd+', 'N', row.rpartition('/')[2])}  {cells['type']}"


def read(file: Path, is_camera: bool) -> Graph:
    """The optimized float graph, with the preprocessing that the log's YAML asks for."""
    with tempfile.TemporaryDirectory() as folder:
        content = gzip.decompress(file.read_bytes())
        path = Path(folder) / file.stem
        path.write_bytes(content)
        source = SourceFile(path.name, str(path), hashlib.sha256(content).hexdigest())
        given = {"*": NV12} if is_camera else {}
        return optimized(
            original_float(ModelSection(FilePath(path.name)), given, {"model.path": (source,)})
        )


def one_sample(graph: Graph) -> Samples:
    """Pixels, or numbers around zero."""
    numbers = np.random.default_rng(0)

    def fed(_: int) -> Feeds:
        return {
            str(value.name): numbers.integers(-128, 128, shape(value)).astype(np.float32)
            for value in graph.inputs
        }

    first = fed(0)
    return Samples(("0",), lambda _: first)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--oracle", type=Path, default=ORACLE)
    parser.add_argument("--only", nargs="*", help="names of tables")
    parser.add_argument("--show", type=int, default=12, help="so many kinds of differences")
    given = parser.parse_args(argv)
    total: dict[str, Agreement] = {}
    kinds = Counter[str]()
    print(f"{'table':22} " + " ".join(f"{name:>9}" for name in ("rows", *FIELDS)))
    for file in sorted((given.oracle / "tables").glob("*.json")):
        if given.only and file.stem not in given.only:
            continue
        table = json.loads(file.read_text())
        theirs = their_rows(table)
        is_camera = any(row.startswith(PREPROCESS) for row in theirs)
        graph = read(given.oracle / "models" / f"{file.stem}.onnx.gz", is_camera)
        target = read_target(MARCHES[table["march"]])
        made = our_rows(graph, one_sample(graph), target) if is_camera else {}
        ours = printed(made or checked_rows(graph, target))
        found = agreement(theirs, ours)
        total["all"] = total["all"] + found if total else found
        kinds.update(differences(theirs, ours))
        print(f"{file.stem:22} {found.line}", flush=True)
    for name, found in total.items():
        print(f"{name:22} {found.line}")
    for kind, often in kinds.most_common(given.show):
        print(f"{often:5}  {kind}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
