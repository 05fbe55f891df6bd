"""Vela's own estimate of a file that it compiled, read from the ZIP appended to the file.

The figures come from Vela's model of the chip and of the system in the target's configuration.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar

from npumake.bundle.archive import DAMAGE
from npumake.compilers.vela import ESTIMATE
from npumake.digest import Json
from npumake.errors import GraphError
from npumake.perf.page import page, table

T = TypeVar("T")

SUFFIX = ".tflite"
MAX_FIGURE = 1e30  # larger figures are damage
MAX_ESTIMATE_BYTES = 1 << 24  # a layer takes some hundred
OFF_CHIP = ("dram", "off_chip_flash")
DIRECTIONS = (("load", "read"), ("stor", "write"))
ASSUMED = (
    "estimated by Vela for the system configuration in the target's file; nothing was measured"
)
NO_NPU = "nothing runs on the NPU"
LATENCY = "latency (ms)"


def read_vela(path: Path) -> dict[str, Json]:
    """The estimate: milliseconds, memory in bytes. Without LATENCY where nothing runs on the NPU.
    Raises GraphError for a file without one."""
    if not path.is_file():
        raise GraphError("no such file", str(path))
    with path.open("rb") as file:
        return vela_of(file, path.name)


def vela_of(file: BinaryIO, name: str) -> dict[str, Json]:
    try:
        with zipfile.ZipFile(file) as archive:
            if archive.getinfo(ESTIMATE).file_size > MAX_ESTIMATE_BYTES:
                raise ValueError("too large")
            document = json.loads(archive.read(ESTIMATE))
        return _document(_of(dict, document, "the estimate"))
    except (*DAMAGE, zlib.error) as error:
        hint = "perf reads .hybrid and Vela's files; `npumake bench` measures on this machine"
        message = "it has no readable estimate of Vela"
        raise GraphError(f"{message}: {error}", name, hint) from error


def has_estimate(data: bytes) -> bool:
    """Whether a ZIP with an estimate is appended to the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return ESTIMATE in archive.namelist()
    except zipfile.BadZipFile:
        return False


def _of(kind: type[T], value: Json, name: str) -> T:
    """Raises ValueError for a value of another type."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _figure(table: Mapping[str, Json], key: str) -> float:
    """A figure within 0..MAX_FIGURE. Raises ValueError for anything else."""
    value: Json = table.get(key)
    if type(value) not in (int, float) or not 0 <= value < MAX_FIGURE:
        raise ValueError(f"`{key}` is {value!r}")
    return float(value)


def _word(table: Mapping[str, Json], key: str) -> str:
    """A name as text; Vela writes numeric names as numbers. Raises ValueError for anything else."""
    value = table.get(key)
    if not isinstance(value, (str, float)):
        raise ValueError(f"`{key}` is {value!r}")
    return str(value)


def _document(estimate: Mapping[str, Json]) -> dict[str, Json]:
    layers = [_of(dict, row, "a layer") for row in _of(list, estimate.get("layers"), "`layers`")]
    operators = _of(dict, estimate.get("operators"), "`operators`")
    counted = {unit: int(_figure(operators, unit)) for unit in ("npu", "cpu")}
    figures = _figures(_of(dict, estimate.get("summary"), "`summary`")) if counted["npu"] else {}
    cpu, tool = counted["cpu"], _word(estimate, "tool")
    left_out = [f"{cpu} operator{'s are' if cpu > 1 else ' is'} on the CPU, not in it"]
    return {
        **figures,
        "operators": counted,
        "layer details": [
            {
                "layer name": _word(layer, "Name"),
                "type": _word(layer, "NNG Operator"),
                "on": _word(layer, "Target"),
                "multiply-accumulates": _figure(layer, "MAC Count"),
                "cycles": _figure(layer, "Op Cycles"),
            }
            for layer in layers
        ],
        "assumptions": [f"{tool}: {ASSUMED}", *(left_out if cpu else [])] if figures else [],
    }


def _figures(summary: Mapping[str, Json]) -> dict[str, Json]:
    """Raises ValueError for a summary without a latency."""
    seconds = _figure(summary, "inference_time")
    if not seconds:
        raise ValueError("a frame of 0 s")
    return {
        LATENCY: 1000.0 * seconds,
        "FPS": 1.0 / seconds,
        "cycles": _figure(summary, "cycles_total"),
        **{f"{way}ed bytes per frame": _moved(summary, verb) for way, verb in DIRECTIONS},
        "memory (KiB)": {
            key.removesuffix("_memory_used"): _figure(summary, key)
            for key in summary
            if key.endswith("_memory_used")
        },
    }


def _moved(summary: Mapping[str, Json], verb: str) -> float:
    """Bytes to or from off-chip memory."""
    columns = [
        f"{m}_{tensor_kind}_{verb}_bytes"
        for m in OFF_CHIP
        for tensor_kind in ("feature_map", "weight")
    ]
    return sum(_figure(summary, column) for column in columns)


def vela_lines(name: str, document: Mapping[str, Json]) -> Iterator[str]:
    """The estimate as lines of text."""
    if LATENCY not in document:
        yield f"{name}: {NO_NPU}"
        yield from _operator_lines(document)
        return
    yield f"{name}, per frame, estimated by Vela"
    yield f"  latency        {document[LATENCY]:.3f} ms, {document['FPS']:.1f} FPS"
    yield f"  cycles         {document['cycles']:.0f}"
    loaded, stored = (document[f"{way}ed bytes per frame"] for way, _ in DIRECTIONS)
    yield f"  off the chip   {loaded:.0f} bytes loaded, {stored:.0f} stored"
    for memory, size in document["memory (KiB)"].items():
        yield f"  {memory:<14} {size:.1f} KiB"
    yield from _operator_lines(document)


def _operator_lines(document: Mapping[str, Json]) -> Iterator[str]:
    counted = document["operators"]
    yield f"  operators      {counted['npu']} on the NPU, {counted['cpu']} on the CPU"
    yield from (f"  assumed: {line}" for line in document["assumptions"])


def vela_page(name: str, document: Mapping[str, Json]) -> str:
    summary = [
        ("Model Name", name),
        *(_summary(document) if LATENCY in document else [("Model Latency(ms)", NO_NPU)]),
        *(("Assumed", line) for line in document["assumptions"]),
    ]
    rows = [
        (
            layer["layer name"],
            layer["type"],
            layer["on"],
            f"{layer['multiply-accumulates']:.0f}",
            f"{layer['cycles']:.0f}",
        )
        for layer in document["layer details"]
    ]
    head = ("Layer", "Type", "On", "MACs", "Cycles")
    parts = ["<h2>Model Performance Summary</h2>", table(("", ""), summary)]
    return page(name, [*parts, "<h2>Layer Details</h2>", table(head, rows)])


def _summary(document: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    yield "Model Latency(ms)", f"{document[LATENCY]:.3f}"
    yield "FPS", f"{document['FPS']:.2f}"
    yield "Cycles", f"{document['cycles']:.0f}"
    yield "Loaded Bytes per Frame", f"{document['loaded bytes per frame']:.0f}"
    yield "Stored Bytes per Frame", f"{document['stored bytes per frame']:.0f}"
    yield from ((f"{key}, KiB", f"{size:.1f}") for key, size in document["memory (KiB)"].items())
