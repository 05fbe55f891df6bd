"""Vendors' files for the digits model, and readers of the logs that come of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from workspaces import REPO

DIGITS = REPO / "projects" / "digits"
HB_MAPPER = """\
model_parameters:
  onnx_model: 'digits.onnx'
  march: 'bayes-e'
  output_model_file_prefix: 'digits_8x8_gray'
  working_dir: './model_output'
  layer_out_dump: False
input_parameters:
  input_name: ""
  input_type_train: 'gray'
  input_layout_train: 'NCHW'
  input_type_rt: 'gray'
  norm_type: 'data_scale'
  scale_value: 0.0625
calibration_parameters:
  cal_data_dir: './calibration_data'
  cal_data_type: 'uint8'
  calibration_type: 'max'
compiler_parameters:
  compile_mode: 'latency'
  debug: False
  core_num: 1
  optimize_level: 'O3'
"""
HB_COMPILE = """\
model_parameters:
  onnx_model: digits.onnx
  march: nash-e
  output_model_file_prefix: digits_8x8_gray
input_parameters:
  input_type_rt: gray
  input_type_train: gray
  input_layout_train: NCHW
  scale_value: 0.0625
calibration_parameters:
  cal_data_dir: ./calibration_data
  calibration_type: max
"""


def write_samples(folder: Path, scale: float, kind: type) -> None:
    (folder / "calibration_data").mkdir()
    for file in sorted((DIGITS / "samples").iterdir()):
        pixels = np.load(file)
        np.save(folder / "calibration_data" / file.name, (pixels * scale).astype(kind))


def read_ruled(text: str) -> tuple[str, list[dict[str, str]]]:
    """By the places of the heads, as a reader of fixed columns does."""
    title, above, heads, below, *rows = text.split("\n")
    assert set(above) == {"="}
    assert set(below) == {"-"}
    assert len(above) == len(below) == len(heads)
    names = re.split(r"\s{2,}", heads.strip())
    starts = [heads.index(name) for name in names]
    ends = [*starts[1:], len(heads)]
    return title, [
        {n: row[a:b].strip() for n, a, b in zip(names, starts, ends, strict=True)} for row in rows
    ]


def cells(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.split("\n") if "|" in line
    ]
