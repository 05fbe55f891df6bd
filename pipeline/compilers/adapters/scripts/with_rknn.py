"""model.onnx → model.rknn, on the grids of its Q/DQ nodes: told.json {platform}.

The toolkit reads opsets up to 19. A model of ours is of opset 20, and the same in 19 unless it has
an operator that 20 changed.
"""

import json
from pathlib import Path

import onnx
from rknn.api import RKNN

TOLD = json.loads(Path("told.json").read_text())
NEWEST = 19
CHANGED = {"AffineGrid", "DFT", "Gelu", "GridSample", "ImageDecoder", "RegexFullMatch"}

model = onnx.load("model.onnx")
changed = sorted({node.op_type for node in model.graph.node} & CHANGED)
if changed:
    raise SystemExit(f"{', '.join(changed)}: of opset 20, and RKNN reads {NEWEST} at most")
for opset in model.opset_import:
    if opset.domain in ("", "ai.onnx"):
        opset.version = min(opset.version, NEWEST)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "older.onnx")

rknn = RKNN(verbose=False)
steps = {
    "config": {"target_platform": TOLD["platform"]},
    "load_onnx": {"model": "older.onnx"},
    "build": {"do_quantization": False},
    "export_rknn": {"export_path": "model.rknn"},
}
for name, options in steps.items():
    if getattr(rknn, name)(**options):
        raise SystemExit(f"{name} fails")
rknn.release()
