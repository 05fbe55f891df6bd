"""model.onnx → an ONNX file with QNN's binary for an HTP: options.json {htp_arch, soc_model}."""

import json
from pathlib import Path

import onnxruntime
import onnxruntime_qnn

OPTIONS = json.loads(Path("options.json").read_text(encoding="utf-8"))
NAME = "qnn"

onnxruntime.register_execution_provider_library(NAME, onnxruntime_qnn.get_library_path())
devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
options = onnxruntime.SessionOptions()
# A node that the NPU does not support is an error, instead of a fallback to the host's CPU.
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
backend = {"backend_path": onnxruntime_qnn.get_qnn_htp_path()}
options.add_provider_for_devices(devices[:1], {**backend, **OPTIONS})
compiler = onnxruntime.ModelCompiler(options, "model.onnx", embed_compiled_data_into_model=True)
compiler.compile_to_file("compiled.onnx")
