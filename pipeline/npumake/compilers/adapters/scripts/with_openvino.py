"""model.onnx → OpenVINO's IR, checked by the device's plugin: options.json {device}."""

import json
from pathlib import Path

import openvino

OPTIONS = json.loads(Path("options.json").read_text(encoding="utf-8"))

openvino.save_model(openvino.convert_model("model.onnx"), "model.xml", compress_to_fp16=False)
openvino.Core().compile_model("model.xml", OPTIONS["device"])
