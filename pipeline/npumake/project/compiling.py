"""The sections `compile:` and `comparison:`, and the effect of each key of `compile:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc


@dataclass(frozen=True)
class BoardCost:
    """Figures of the board, for the estimate of a `.hybrid`."""

    ddr: Annotated[
        float | None,
        Doc(
            "GB/s between the NPU and its DDR, for estimates; as `--ddr` of `npumake perf`.", 0.001
        ),
    ] = None


@dataclass(frozen=True)
class Compile:
    prefix: Annotated[
        str | None, Doc("Name of the compiled file; the project's name by default.")
    ] = None
    compile_mode: Annotated[
        Literal["latency", "bandwidth", "balance"], Doc("The goal of the vendor's compiler.")
    ] = "latency"
    optimize_level: Annotated[
        Literal["O0", "O1", "O2", "O3"], Doc("Optimization level of the vendor's compiler.")
    ] = "O3"
    core_num: Annotated[int, Doc("NPU cores that one model runs on.", 1, 16)] = 1
    max_time_per_fc: Annotated[
        int, Doc("Microseconds after which another model may run: 0, never, or 1000 and more.", 0)
    ] = 0
    input_source: Annotated[
        Mapping[str, Literal["ddr", "pyramid", "resizer"]],
        Doc("Source of each input on the board, by input name."),
    ] = field(default_factory=dict)
    jobs: Annotated[int | None, Doc("Number of processes of the vendor's compiler.", 1, 4096)] = (
        None
    )
    debug: Annotated[bool, Doc("Adds each layer to the performance report.")] = False
    vendor_tool: Annotated[
        bool, Doc("Compiles with the vendor's own tool, which must be on PATH.")
    ] = False
    profiling: Annotated[bool, Doc("`npumake bench` times each layer.")] = False
    task: Annotated[
        str | None, Doc("Job number of the converter, such as bt-449c, for the metadata.")
    ] = None
    remove_types: Annotated[
        tuple[Literal["Quantize", "Dequantize", "Transpose", "Cast", "Reshape", "Softmax"], ...],
        Doc("Operators to remove from the inputs and outputs of the compiled program, repeatedly."),
    ] = ()
    remove_nodes: Annotated[
        tuple[str, ...],
        Doc(
            "Nodes to remove, by name: those that `npumake modify` lists, or the input of a "
            "Dequantize."
        ),
    ] = ()


@dataclass(frozen=True)
class ComparisonSettings:
    """How many samples the table and the check of the compiled file are computed from."""

    compiled: Annotated[
        int | Literal["all", "off"],
        Doc("Samples to run each compiled file on: a number, `all` or `off`.", 1),
    ] = 8
    samples: Annotated[
        int | Literal["all"] | None,
        Doc(
            "Samples to compare every node on: a number or `all`. "
            "Default: 16; `all` with `report` or `gates`.",
            1,
        ),
    ] = None


REMOVED = ("remove_types", "remove_nodes")  # the bundle's provenance records the removed nodes
OWN_KEYS = ("prefix", "vendor_tool", "task", *REMOVED)  # not for the vendor's compiler
RECORDED = "recorded for the vendor's compiler; it does not change our integers"

# The effect of each key. A bundle's manifest holds all keys except OWN_KEYS.
EFFECTS: Mapping[str, str] = {
    "prefix": "names the compiled file",
    "compile_mode": RECORDED,
    "optimize_level": RECORDED,
    "core_num": "the estimate uses this many cores; more than the chip allows are refused",
    "max_time_per_fc": "the estimate splits subgraphs into function calls of at most this time",
    "input_source": RECORDED,
    "jobs": RECORDED,
    "debug": "the performance report has a row for each layer",
    "vendor_tool": "the compiled file is the vendor's, not a bundle",
    "profiling": "npumake bench prints SyNAP's table of the layers; also set for SyNAP's converter",
    "task": "recorded in the converter's block of a detector's metadata",
    "remove_types": "the bundle lacks these border nodes; its inputs and outputs may be quantized",
    "remove_nodes": "the bundle lacks these border nodes; its inputs and outputs may be quantized",
}
