"""model.onnx → OpenVINO's IR, checked by the device's plugin: options.json {device}.

Of equal values ONNX has the lower index come first; OpenVINO's TopK does so only if it is stable.
"""

import json
from pathlib import Path

import openvino

OPTIONS = json.loads(Path("options.json").read_text(encoding="utf-8"))

model = openvino.convert_model("model.onnx")
for operation in model.get_ops():
    attributes = operation.get_attributes() if operation.get_type_name() == "TopK" else {}
    if "stable" in attributes and attributes["sort"] != "none":
        operation.set_attribute("stable", True)
openvino.save_model(model, "model.xml", compress_to_fp16=False)
openvino.Core().compile_model("model.xml", OPTIONS["device"])
