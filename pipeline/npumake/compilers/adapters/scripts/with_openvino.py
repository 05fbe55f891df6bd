"""model.onnx → OpenVINO's IR, compiled once by the device's plugin as a check: told.json
{device}."""

import json
from pathlib import Path

import openvino

TOLD = json.loads(Path("told.json").read_text(encoding="utf-8"))

openvino.save_model(openvino.convert_model("model.onnx"), "model.xml", compress_to_fp16=False)
openvino.Core().compile_model("model.xml", TOLD["device"])
