"""model.onnx → model.rknn, with the scales of its Q/DQ nodes: options.json {platform}.

The toolkit reads opsets up to 19. Models of opset 20 mean the same in 19, except for operators that
20 changed. The toolkit fails at a DequantizeLinear with both a Conv and a QuantizeLinear as
readers, so each reader gets its own.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import onnx
from rknn.api import RKNN

OPTIONS = json.loads(Path("options.json").read_text(encoding="utf-8"))
MAX_OPSET = 19
CHANGED = {"AffineGrid", "DFT", "Gelu", "GridSample", "ImageDecoder", "RegexFullMatch"}


def apart(nodes: list[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes, with a separate DequantizeLinear for each of its readers."""
    dequantizers = {node.output[0]: node for node in nodes if node.op_type == "DequantizeLinear"}
    read: set[str] = set()
    for node in nodes:
        for at, name in enumerate(node.input):
            if name in dequantizers and name in read:
                own = deepcopy(dequantizers[name])
                own.name = own.output[0] = node.input[at] = f"{name}_of_{node.output[0]}_{at}"
                yield own
            read.add(name)
        yield node


model = onnx.load("model.onnx")
changed = sorted({node.op_type for node in model.graph.node} & CHANGED)
if changed:
    raise SystemExit(f"{', '.join(changed)}: of opset 20, and RKNN reads {MAX_OPSET} at most")
for opset in model.opset_import:
    if opset.domain in ("", "ai.onnx"):
        opset.version = min(opset.version, MAX_OPSET)
nodes = list(apart(list(model.graph.node)))
del model.graph.node[:]
model.graph.node.extend(nodes)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "older.onnx")

rknn = RKNN(verbose=False)
steps = {
    "config": {"target_platform": OPTIONS["platform"]},
    "load_onnx": {"model": "older.onnx"},
    "build": {"do_quantization": False},
    "export_rknn": {"export_path": "model.rknn"},
}
for name, options in steps.items():
    if getattr(rknn, name)(**options):
        raise SystemExit(f"{name} fails")
rknn.release()
