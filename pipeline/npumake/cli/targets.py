"""npumake targets: the chips, with type, limits and compiler, and whether that is installed

example:
  npumake targets
  npumake targets rk3588 --json
  npumake targets --format markdown

`Ready`: npumake compiles for the chip on this machine. `npumake doctor` has the line that installs
a missing compiler. A bundle (.hybrid) is for accuracy and CI: the vendor's own tool compiles the
file for the board, from `npumake handover`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from npumake import digest
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.errors import ProjectError, did_you_mean

if TYPE_CHECKING:
    from npumake.targets.target import Target

COMPILERS = {
    "hybrid": "npumake",
    "iree": "IREE",
    "onnx": "npumake",
    "openvino": "OpenVINO",
    "qnn": "onnxruntime-qnn",
    "rknn": "RKNN-Toolkit2",
    "tflite": "npumake",
    "torq": "torq-compiler",
    "vela": "Vela",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="CHIP", help="all when none is named")
    parser.add_argument("--json", action="store_true", help="for machines")
    wide_argument(parser)
    format_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.targets.reader import known_targets, read_target

    chips = known_targets()
    for name in arguments.targets:
        if name not in chips:
            raise ProjectError(f"unknown target `{name}`", hint=did_you_mean(name, chips))
    rows = [described(read_target(name)) for name in arguments.targets or chips]
    if arguments.json:
        print(digest.text(rows, indent=1))
        return 0
    _print(rows)
    return 0


def described(target: Target) -> dict[str, Any]:
    """The facts of a target by which to select it, for machines."""
    from npumake.compilers.required import missing_compiler

    grids, weights, missing = target.activations, target.weights, missing_compiler(target.backend)
    return {
        "name": target.name,
        "vendor": target.vendor,
        "unit": target.unit,
        "activations": grids.dtype,
        "symmetric": grids.symmetric,
        "weights": weights.dtype,
        "per_channel": weights.per_channel,
        "int16_operators": None if target.int16 is None else len(target.int16),
        "operators": None if target.operators is None else len(target.operators),
        "limits": len(target.limits),
        "compiler": COMPILERS[target.backend],
        "file": target.suffix,
        "vendor_tool": target.tool.command if target.tool else None,
        "ready": missing is None,
        "missing": missing.what if missing else "",
        "install": missing.hint if missing else "",
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from npumake.cli.columns import Column, Line, draw_table

    columns = [
        Column("Target"),
        Column("Vendor", "name", is_optional=True),
        Column("Activations"),
        Column("Weights", is_optional=True),
        Column("Operators", "figure", is_optional=True),
        Column("Limits", "figure", is_optional=True),
        Column("Compiler", "name"),
        Column("File", is_optional=True),
        Column("Ready"),
    ]
    lines = [Line(_cells(row), None if row["ready"] else "yellow") for row in rows]
    SCREEN.table(draw_table(columns, lines, SCREEN.width))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    kind = "symmetric" if row["symmetric"] else "asymmetric"
    tool = f", {row['vendor_tool']} by hand-over" if row["vendor_tool"] else ""
    return (
        row["name"],
        row["vendor"],
        f"{row['activations']} {kind}",
        f"{row['weights']} per {'channel' if row['per_channel'] else 'tensor'}",
        "all" if row["operators"] is None else str(row["operators"]),
        str(row["limits"]),
        row["compiler"] + tool,
        row["file"],
        "yes" if row["ready"] else "no",
    )
