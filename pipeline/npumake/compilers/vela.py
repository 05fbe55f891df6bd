"""Ethos-U: .tflite → Vela → a .tflite with one operator per part that runs on the NPU.

Vela's estimates are stored beside it as JSON: the summary (clock in Hz, memory in KiB, bandwidths
in GB/s, `inference_time` in seconds, cycles in total and per memory) and one row per layer. They
come from its model of the chip and the system configuration, and are not measurements. A figure
that is no finite number is stored as Vela's text: it writes `nan` where nothing runs on the NPU.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from npumake import digest
from npumake.compilers.process import require, run_python
from npumake.digest import Json
from npumake.errors import StageError
from npumake.lifetime.temporaries import temporary_folder
from npumake.targets.target import Target

DISTRIBUTION = "ethos-u-vela"
ESTIMATE = "vela.json"  # member of the appended ZIP


def with_vela(model: bytes, target: Target) -> tuple[bytes, dict[str, bytes]]:
    """The file for the NPU, and ESTIMATE. Raises StageError if Vela is not installed or
    fails."""
    vela = target.vela
    assert vela is not None
    with temporary_folder() as folder:
        (folder / "model.tflite").write_bytes(model)
        arguments = ["-m", "ethosu.vela", "model.tflite", "--output-dir", "out"]
        arguments += ["--accelerator-config", vela.accelerator, "--config", "Arm/vela.ini"]
        arguments += ["--system-config", vela.system_config, "--memory-mode", vela.memory_mode]
        run_python([*arguments, "--verbose-performance"], folder, (DISTRIBUTION,))
        estimate = estimate_in(folder / "out")
        data = (folder / "out" / "model_vela.tflite").read_bytes()
    return data, {ESTIMATE: digest.canonical(estimate)}


def estimate_in(folder: Path) -> Mapping[str, Json]:
    """Vela's tables in the folder. Raises StageError for one that cannot be read."""
    summary, *_ = _rows(folder, "*_summary_*.csv")
    layers = _rows(folder, "*_per-layer.csv")
    on_npu = sum(layer.get("Target") == "NPU" for layer in layers)
    return {
        "tool": f"{DISTRIBUTION} {require(DISTRIBUTION)}",
        "operators": {"npu": on_npu, "cpu": len(layers) - on_npu},
        "summary": summary,
        "layers": layers,
    }


def _rows(folder: Path, pattern: str) -> list[dict[str, Json]]:
    """The rows of the one table of this name; a missing cell is empty. Raises StageError for a file
    that is missing or not a table."""
    try:
        (file,) = folder.glob(pattern)
        text = file.read_text(encoding="utf-8")
        rows = list(csv.DictReader(text.splitlines(), restkey="", restval="", strict=True))
    except (ValueError, OSError, csv.Error) as error:
        message = f"{DISTRIBUTION} wrote no readable `{pattern}`: {error}"
        raise StageError(message, hint=f"reinstall it: pip install {DISTRIBUTION}") from error
    if not rows:
        raise StageError(f"{DISTRIBUTION} wrote an empty `{pattern}`")
    return [{key: _number(cell) for key, cell in row.items() if key} for row in rows]


def _number(text: str) -> Json:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
