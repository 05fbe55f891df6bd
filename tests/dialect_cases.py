"""Full examples of vendors' YAML: the templates of their guides, with every key written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from npumake.dialects.drobotics import keys as hb_mapper
from npumake.dialects.horizon import keys as hb_compile
from npumake.project.document import Document, parse_document
from npumake.project.scalar import older_meaning

ALL_KEYS = {*hb_mapper.KEYS, *hb_compile.KEYS}
GROUPS = tuple(dict.fromkeys(key.partition(".")[0] for key in hb_mapper.KEYS))

HB_MAPPER = """\
# Model parameter group
model_parameters:
  # Original ONNX floating-point model file
  onnx_model: 'mobilenetv1.onnx'
  march: 'bayes-e'
  output_model_file_prefix: 'mobilenetv1'
  working_dir: './model_output_dir'
  layer_out_dump: False
  output_nodes: prob
  remove_node_type: Dequantize;Transpose
  remove_node_name: fc7
# Input information parameter group
input_parameters:
  input_name: "data"
  input_type_train: 'bgr'
  input_layout_train: 'NCHW'
  input_shape: '1x3x224x224'
  input_batch: 1
  norm_type: 'data_mean_and_scale'
  mean_value: '103.94 116.78 123.68'
  scale_value: '0.017'
  input_type_rt: 'yuv444'
  input_space_and_range: 'regular'
  input_layout_rt: 'NHWC'
# Calibration parameter group
calibration_parameters:
  cal_data_dir: './calibration_data'
  cal_data_type: 'float32'
  preprocess_on: False
  calibration_type: 'max'
  max_percentile: 0.9999
  per_channel: False
# Compiler parameter group
compiler_parameters:
  compile_mode: 'latency'
  debug: False
  core_num: 1
  optimize_level: 'O3'
  input_source: {"data": "ddr"}
  max_time_per_fc: 1000
  jobs: 8
"""

HB_COMPILE = """\
model_parameters:
  onnx_model: ./resnet50.onnx
  march: nash-e
  working_dir: ./model_output
  output_model_file_prefix: resnet50_224x224_nv12
  layer_out_dump: false
  output_nodes: prob
  remove_node_type: Quantize;Dequantize
  remove_node_name: fc
input_parameters:
  input_name: image
  input_type_rt: nv12
  input_type_train: rgb
  input_layout_train: NCHW
  input_space_and_range: regular
  input_shape: 1x3x224x224
  input_batch: 1
  mean_value: 123.675 116.28 103.53
  scale_value: 0.01712 0.0175 0.01743
calibration_parameters:
  cal_data_dir: ./calibration_data
  calibration_type: max
  max_percentile: 0.9999
  per_channel: false
compiler_parameters:
  compile_mode: latency
  optimize_level: O2
  core_num: 1
  jobs: 32
"""

ARA2 = """\
model: yolov8n-seg.onnx
int16_mode: int16_smart
calibration: calibration-ds-2bcd-0123456789abcdef.safetensors
metadata: edgefirst.json
task: bt-449c
studio_server: test.edgefirst.studio
"""

# The metafile of the SyNAP guide, "Conversion Metafile".
SYNAP = """\
delegate: npu

data_layout: default

security:
  secure: true
  file: ../security.yaml

inputs:
  - name: input
    shape: [1, 224, 224, 3]
    means: [128, 128, 128]
    scale: 128
    format: rgb
    security: any
    preprocess:
      type: nv21
      size: [1920, 1080]
      crop: true

outputs:
  - name: MobilenetV1/Predictions/Reshape_1
    dequantize: false
    format: confidence_array

quantization:
  data_type: uint8
  scheme: default
  mode: standard
  algorithm: standard
  options:
  dataset:
    - ../../sample/*_224x224.jpg
"""

# What a project says beside the YAML of a tool that is given its model on the command line.
BESIDE: dict[str, Any] = {
    "ara2": {},
    "hb_mapper": {},
    "hb_compile": {},
    "synap": {"model": {"path": "mobilenet_v1.tflite"}, "targets": ["vs680"]},
}


def document(text: str) -> Document:
    return parse_document(text.encode(), "config.yaml", older_meaning)


def changed(text: str, changes: Mapping[str, Any]) -> str:
    """The YAML with other values, each in the group that knows its key; None removes one."""
    data = document(text).data
    for name, value in changes.items():
        group = next((g for g in GROUPS if f"{g}.{name}" in ALL_KEYS), "input_parameters")
        inside = data.setdefault(group, {})
        inside.pop(name, None)
        if value is not None:
            inside[name] = value
    return json.dumps(data, indent=1)
