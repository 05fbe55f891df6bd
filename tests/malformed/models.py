"""Model files that are wrong in one way each, of every format, written for `test_malformed_models`.

Each function gives the bytes of a file, or the damage that puts them into a project.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import yaml
from onnx import TensorProto, helper

from frontends.nets import caffemodel, inputs, varint

Damage = Callable[[Path], object]

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


# -- projects ------------------------------------------------------------------------------


def project(file: str, data: bytes, shape: list[int] | None = None, **more: bytes) -> Damage:
    """A project around `file`; `more` are weights beside it. Nothing is said of its inputs."""

    def put(folder: Path) -> None:
        (folder / file).write_bytes(data)
        document: dict[str, Any] = {
            "model": {"path": file},
            "data": {"*": {"random": 1}},
            "calibration": {"method": "max"},
            "targets": ["rdk-x5"],
        }
        if shape:
            document["inputs"] = {"*": {"shape": shape}}
        if more:
            document["model"]["weights"] = "held/*"
            (folder / "held").mkdir()
        for name, held in more.items():
            (folder / "held" / name.replace("_", ".")).write_bytes(held)
        (folder / "project.yaml").write_text(yaml.safe_dump(document))

    return put


# -- ONNX ----------------------------------------------------------------------------------


def graph(body: str, header: str = HEADER) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{header} agraph {body}")


def text(body: str, header: str = HEADER) -> bytes:
    return graph(body, header).SerializeToString()


RELU = text("(float[1,4] x) => (float[1,4] y) { y = Relu(x) }")


def edited(change: Callable[[onnx.ModelProto], object], body: str = "") -> bytes:
    model = graph(body or "(float[1,4] x) => (float[1,4] y) { y = Add(x, w) }")
    change(model)
    return model.SerializeToString()


def weight(dims: list[int], data: bytes = b"", kind: int = TensorProto.FLOAT) -> TensorProto:
    return TensorProto(name="w", dims=dims, data_type=kind, raw_data=data)


def holding(tensor: TensorProto) -> bytes:
    return edited(lambda model: model.graph.initializer.append(tensor))


def outside(location: str, **said: int) -> bytes:
    tensor = weight([1, 4])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **said}.items():
        tensor.external_data.add(key=key, value=str(value))
    return holding(tensor)


def sparse(dims: list[int], index: int) -> bytes:
    held = onnx.SparseTensorProto(
        values=helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]),
        indices=helper.make_tensor("i", TensorProto.INT64, [1], [index]),
        dims=dims,
    )
    return edited(lambda model: model.graph.sparse_initializer.append(held))


def functions(*bodies: str) -> bytes:
    header = '<ir_version: 9, opset_import: ["" : 17, "mine" : 1]>'
    written = "".join(f'<domain: "mine", opset_import: ["":17, "mine":1]> {b}' for b in bodies)
    body = f"{header} agraph (float[1,4] x) => (float[1,4] y) {{ y = mine.f(x) }} {written}"
    return onnx.parser.parse_model(body).SerializeToString()


def doubling(levels: int) -> bytes:
    bodies = [
        f"{'f' if n == 0 else f'f{n}'} (x) => (y) {{ t = mine.f{n + 1}(x) y = mine.f{n + 1}(t) }}"
        for n in range(levels)
    ]
    return functions(*bodies, f"f{levels} (x) => (y) {{ y = Relu(x) }}")


def nested(levels: int) -> bytes:
    """An If in an If in an If: deeper than protobuf reads."""
    held = b""
    for _ in range(levels):
        branch = field(1, b"then_branch") + field(6, held) + b"\xa0\x01\x05"
        held = field(1, field(4, b"If") + field(5, branch)) + field(2, b"g")
    return b"\x08\x08" + field(7, held) + field(8, b"\x10\x11")


# -- protobuf on the wire ------------------------------------------------------------------


def field(number: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def pb(*nodes: tuple[str, str, tuple[str, ...]]) -> bytes:
    """A GraphDef of (name, op, inputs)."""
    return b"".join(
        field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in read))
        for name, op, read in nodes
    )


# -- Caffe ---------------------------------------------------------------------------------

CONV = 'layer { name: "c" type: "Convolution" bottom: "x0" top: "y" convolution_param { %s } }'


def net(body: str, *shapes: tuple[int, ...]) -> bytes:
    return (inputs(*(shapes or ((1, 3, 8, 8),))) + body).encode()


def caffe(text: bytes, weights: bytes | None = None) -> Damage:
    held = caffemodel({"c": []}) + field(100, field(1, "d") + field(7, b"\x2a\x00"))
    return project("net.prototxt", text, net_caffemodel=held if weights is None else weights)
