"""Ethos-U: .tflite → Vela → a .tflite with one operator per part that runs on the NPU.

Vela's estimates are stored beside it as JSON: the summary (clock in Hz, memory in KiB, bandwidths
in GB/s, `inference_time` in seconds, cycles in total and per memory) and one row per layer. They
come from its model of the chip and the system configuration, and are not measurements.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from npumake import digest
from npumake.compilers.process import require, run_python
from npumake.digest import Json
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
        estimate = _estimate(folder / "out")
        data = (folder / "out" / "model_vela.tflite").read_bytes()
    return data, {ESTIMATE: digest.canonical(estimate)}


def _estimate(folder: Path) -> Mapping[str, Json]:
    (summary,) = _rows(next(iter(sorted(folder.glob("*_summary_*.csv")))))
    layers = _rows(folder / "model_per-layer.csv")
    on_npu = sum(layer["Target"] == "NPU" for layer in layers)
    return {
        "tool": f"{DISTRIBUTION} {require(DISTRIBUTION)}",
        "operators": {"npu": on_npu, "cpu": len(layers) - on_npu},
        "summary": summary,
        "layers": layers,
    }


def _rows(file: Path) -> list[dict[str, Json]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(lines)]


def _number(text: str) -> Json:
    try:
        return float(text)
    except ValueError:
        return text
