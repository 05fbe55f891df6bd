"""Malformed models: each is one clear error, quickly, in little memory, and touches nothing.

A row: its name, how the project is made, words of the one error. The exit code is 3, the model's.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import onnx
import pytest

from frontends.nets import caffemodel
from frontends.tflite_writer import Op, T, constant, written
from malformed.models import (
    CONV,
    caffe,
    doubling,
    edited,
    field,
    functions,
    holding,
    nested,
    net,
    outside,
    pb,
    project,
    sparse,
    text,
    weight,
)  # fmt: skip
from malformed.runner import Case, Server, check
from workspaces import REPO

DIGITS = (REPO / "projects/digits/model.onnx").read_bytes()
IMAGE = (1, 4, 4, 1)
LITE = written([T(IMAGE), T(IMAGE)], [Op("RELU", [0], [1])], [0], [1])
FROZEN = pb(("x", "Placeholder", ()), ("y", "Relu", ("x",)))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
BODY = "(float[1] x) => (float[1] y) { y = Relu(x) }"
WEIGHT = np.ones((2, 3, 3, 3), np.float32)


def onnx_file(data: bytes, **more):
    return project("m.onnx", data, **more)


def lite(data: bytes):
    return project("m.tflite", data)


def linked(target: str):
    """The weights of a model, as a link that leads to another place."""

    def put(folder: Path) -> None:
        (folder / "m.onnx").write_bytes(outside("w.bin"))
        (folder / "w.bin").symlink_to(target)

    return put


def at(data: bytes, position: int, kind: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(f"<{kind}", changed, position, value)
    return bytes(changed)


def cycle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[1] = "z"
    model.graph.node.append(onnx.helper.make_node("Neg", ["y"], ["z"]))


def twice(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[1] = "x"
    model.graph.node.append(onnx.helper.make_node("Neg", ["x"], ["y"]))


def shaped(*dims: object) -> bytes:
    inside = ",".join(map(str, dims))
    return text(f"(float[{inside}] x) => (float[{inside}] y) {{ y = Relu(x) }}")


def negative(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[1] = "x"
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -4


ONNX = {
    "empty": (onnx_file(b""), "holds no graph"),
    "text": (onnx_file(b"ir_version: 8\ngraph {}\n"), "not an ONNX model"),
    "an image": (onnx_file(PNG), "not an ONNX model"),
    "a tflite file": (onnx_file(LITE), "not an ONNX model"),
    "cut off": (onnx_file(DIGITS[:-900]), "not a"),
    "half": (onnx_file(DIGITS[: len(DIGITS) // 2]), "not a"),
    "a bit flipped in its length": (onnx_file(at(DIGITS, 9, "B", 0xFF)), "not a"),
    "a cycle": (onnx_file(edited(cycle)), "not a valid ONNX model"),
    "a tensor made twice": (onnx_file(edited(twice)), "not a valid ONNX model"),
    "an input nobody makes": (onnx_file(edited(lambda m: None)), "not a valid ONNX model"),
    "an output nobody makes": (
        onnx_file(edited(lambda m: m.graph.output.add(name="z"))),
        "not a valid ONNX model",
    ),
    "two outputs of one name": (
        onnx_file(text("(float[1] x) => (float[1] y, float[1] y) { y = Relu(x) }")),
        "two outputs of the model have the same name",
    ),
    "two inputs of one name": (
        onnx_file(text("(float[1,4] x, float[1,4] x) => (float[1,4] y) { y = Relu(x) }")),
        "not a valid ONNX model",
    ),
    "two weights of one name": (
        onnx_file(edited(lambda m: m.graph.initializer.extend([weight([1, 4], bytes(16))] * 2))),
        "not a valid ONNX model",
    ),
    "an unknown operator": (
        onnx_file(text("(float[1] x) => (float[1] y) { y = NoSuch(x) }")),
        "not a valid ONNX model",
    ),
    "no opset": (onnx_file(edited(lambda m: m.ClearField("opset_import"))), "its ONNX opset"),
    "an opset of the far future": (
        onnx_file(
            text(
                "(float[1] x) => (float[1] y) { y = Relu(x) }",
                '<ir_version: 8, opset_import: ["" : 9999]>',
            )
        ),
        "the model uses opset 9999; the newest is",
    ),
    "an opset of the past": (
        onnx_file(
            text(
                "(float[1] x) => (float[1] y) { y = Relu(x) }",
                '<ir_version: 3, opset_import: ["" : 5]>',
            )
        ),
        "the oldest supported is 7",
    ),
    "an IR version of the far future": (
        onnx_file(edited(lambda m: setattr(m, "ir_version", 99))),
        "IR version 99; the newest is",
    ),
    "a negative dimension": (onnx_file(edited(negative)), "input `x` has the shape [1, -4]"),
    "a dimension of 2^62": (onnx_file(shaped(1, 1 << 62)), "more than the 1,073,741,824 elements"),
    "dimensions whose product overflows": (
        onnx_file(shaped(*[1 << 33] * 4)),
        "more than the 1,073,741,824 elements",
    ),
    "an input of a terabyte": (
        onnx_file(shaped(1, 1 << 38)),
        "more than the 1,073,741,824 elements",
    ),
    "a weight of a terabyte without bytes": (onnx_file(holding(weight([1 << 38]))), "not a valid"),
    "a weight of dimensions that overflow": (
        onnx_file(holding(weight([1 << 33, 1 << 33], bytes(16)))),
        "not a valid",
    ),
    "a weight of negative size": (onnx_file(holding(weight([-4], bytes(16)))), "not a valid"),
    "a weight of an unknown type": (onnx_file(holding(weight([4], bytes(16), 77))), "not a valid"),
    "a weight of text": (onnx_file(holding(weight([1, 4], b"abcd", 8))), "not a valid"),
    "a weight of too few bytes": (onnx_file(holding(weight([1, 4], bytes(15)))), "not a valid"),
    "a constant that fills the memory": (
        onnx_file(
            text(
                "(float[1] x) => (float[N] y) <int64[1] n = {100000000000}> "
                "{ c = ConstantOfShape(n)  y = Add(x, c) }"
            )
        ),
        "more than the 1,073,741,824 elements",
    ),
    "a tile that fills the memory": (
        onnx_file(
            text(
                "(float[1] x) => (float[N,M] y) <int64[2] n = {1000000, 1000000}, "
                "float[1,1] w = {1}> { c = Tile(w, n)  y = Add(x, c) }"
            )
        ),
        "more than the 1,073,741,824 elements",
    ),
    "a range that fills the memory": (
        onnx_file(
            text(
                "(int64[1] x) => (int64[N] y) <int64 a = {0}, int64 b = {100000000000}, "
                "int64 d = {1}> { c = Range(a, b, d)  y = Add(x, c) }"
            )
        ),
        "more than the 1,073,741,824 elements",
    ),
    "weights up the folders": (onnx_file(outside("../../secret")), "is outside the folder"),
    "weights at a root": (onnx_file(outside("/etc/passwd")), "is outside the folder"),
    "weights on a drive": (onnx_file(outside("C:\\secret")), "is outside the folder"),
    "weights that nobody named": (onnx_file(outside("secret")), "is in another file, `secret`"),
    "weights beyond the end": (
        onnx_file(outside("held/w.bin", offset=8), w_bin=bytes(16)),
        "is bytes 8 to 24 of `w.bin`, which has 16",
    ),
    "weights of another length": (
        onnx_file(outside("held/w.bin", length=1 << 50), w_bin=bytes(16)),
        "takes 16 bytes",
    ),
    "weights from before the file": (
        onnx_file(outside("held/w.bin", offset=-16), w_bin=bytes(16)),
        "is bytes -16 to 0",
    ),
    "sparse weights of a terabyte": (onnx_file(sparse([1 << 20, 1 << 20], 0)), "256 MiB"),
    "sparse weights beyond their shape": (onnx_file(sparse([1, 4], 4)), "do not fit its values"),
    "functions in a circle": (
        onnx_file(functions("f (x) => (y) { y = mine.g(x) }", "g (x) => (y) { y = mine.f(x) }")),
        "ends up calling itself",
    ),
    "functions that double": (onnx_file(doubling(40)), "are more than 100000 nodes"),
    "branches deeper than protobuf": (onnx_file(nested(2000)), "not an ONNX model"),
    "branches as deep as protobuf": (onnx_file(nested(30)), "not a"),
    "branches that make other types": (
        onnx_file(
            text(
                "(float[1] x, bool b) => (float[1] y) { y = If(b) <then_branch = t () => "
                "(float[1] u) { u = Neg(x) }, else_branch = e () => (int64[1] v) "
                "{ v = Cast<to = 7>(x) }> }"
            )
        ),
        "the shapes of the model do not fit",
    ),
    "a loop whose body does not fit": (
        onnx_file(
            text(
                "(float[1] x) => (float[1] y) <int64 n = {9}, bool c = {1}> "
                "{ y = Loop(n, c, x) <body = b (int64 i, bool d, float[1] u) => "
                "(bool e) { e = Identity(d) }> }"
            )
        ),
        "the shapes of the model do not fit",
    ),
    "shapes that do not fit": (
        onnx_file(text("(float[2,3] x) => (float[2,3] y) { y = MatMul(x, x) }")),
        "the shapes of the model do not fit",
    ),
}

TFLITE = {
    "empty": (lite(b""), "lacks the identifier"),
    "another format": (lite(DIGITS), "lacks the identifier"),
    "the mark alone": (lite(b"\x00\x00\x00\x00TFL3"), "TFLite"),
    "cut off": (lite(LITE[: len(LITE) // 2]), "TFLite"),
    "a root beyond the end": (lite(at(LITE, 0, "I", 1 << 30)), "TFLite"),
    "a root that is its own": (lite(at(LITE, 0, "I", 0)), "TFLite"),
    "a tensor that is missing": (
        lite(written([T(IMAGE)], [Op("RELU", [0], [7])], [0], [7])),
        "tensor 7 of 1 is missing",
    ),
    "a cycle": (
        lite(written([T(IMAGE)] * 3, [Op("ADD", [0, 2], [1]), Op("RELU", [1], [2])], [0], [2])),
        "is read before it is computed",
    ),
    "a negative dimension": (
        lite(written([T((1, -4, 4, 1)), T(IMAGE)], [Op("RELU", [0], [1])], [0], [1])),
        "has the shape [1, -4, 4, 1]",
    ),
    "a tensor of terabytes": (
        lite(written([T((1 << 30, 1 << 30)), T(IMAGE)], [Op("RELU", [0], [1])], [0], [1])),
        "has the shape",
    ),
    "a reshape of another size": (
        lite(written([T(IMAGE), T((1, 99))], [Op("RESHAPE", [0], [1])], [0], [1])),
        "RESHAPE cannot make [1, 99] of [1, 4, 4, 1]",
    ),
    "a tile of terabytes": (
        lite(
            written(
                [T((1, 1)), constant([1 << 30, 1 << 30], "int32"), T(())],
                [Op("TILE", [0, 1], [2])],
                [0],
                [2],
            )
        ),
        "more than the 1,073,741,824 elements",
    ),
}

CAFFE = {
    "an empty network": (caffe(b""), "it has no layers"),
    "binary": (caffe(caffemodel({"c": [WEIGHT]})), "not a Caffe network"),
    "an unclosed brace": (caffe(net("layer {")), "not a Caffe network"),
    "braces without end": (caffe(b"layer { " * 100_000), "braces are nested deeper than 32"),
    "layers of no known type": (caffe(net('layer { name: "l" type: "Foo" top: "y" }')), "type=Foo"),
    "a blob nobody makes": (
        caffe(net('layer { name: "r" type: "ReLU" bottom: "z" top: "y" }')),
        "reads blob `z`",
    ),
    "an input of terabytes": (
        caffe(
            net('layer { name: "r" type: "ReLU" bottom: "x0" top: "y" }', (1 << 20, 1 << 20, 9, 9))
        ),
        "input `x0` has shape",
    ),
    "a convolution of terabytes": (
        caffe(
            net(CONV % "num_output: 4000000000 kernel_size: 1 bias_term: false"),
            caffemodel({"c": [WEIGHT]}),
        ),
        "the network needs [4000000000, 3, 1, 1]",
    ),
    "a window of four billion": (
        caffe(
            net(CONV % "num_output: 2 kernel_size: 4294967295 bias_term: false"),
            caffemodel({"c": [WEIGHT]}),
        ),
        "is it the .caffemodel of this .prototxt?",
    ),
    "a pad of four billion": (
        caffe(
            net(CONV % "num_output: 2 kernel_size: 3 pad: 4294967295 bias_term: false"),
            caffemodel({"c": [WEIGHT]}),
        ),
        "more than Caffe supports",
    ),
    "no weights": (caffe(net(CONV % "num_output: 2 kernel_size: 3"), b""), "it holds no weights"),
    "weights of another network": (
        caffe(net(CONV % "num_output: 2 kernel_size: 5"), caffemodel({"c": [WEIGHT] * 2})),
        "is it the .caffemodel of this .prototxt?",
    ),
    "weights cut off": (
        caffe(
            net(CONV % "num_output: 2 kernel_size: 3 bias_term: false"),
            caffemodel({"c": [WEIGHT]})[:-40],
        ),
        "not a .caffemodel",
    ),
    "weights of the network's text": (
        caffe(net(CONV % "num_output: 2 kernel_size: 3"), net("")),
        "not a .caffemodel",
    ),
    "two files of weights": (
        project("n.prototxt", net(CONV % "num_output: 2"), a_bin=b"", b_bin=b""),
        "one file of weights; the project names 2",
    ),
}

TENSORFLOW = {
    "empty": (project("m.pb", b""), "not a frozen TensorFlow graph"),
    "text": (project("m.pb", b'node { name: "x" op: "Placeholder" }\n'), "not a"),
    "an ONNX file": (project("m.pb", DIGITS), "not a"),
    "cut off": (project("m.pb", FROZEN[:-3]), "not a TensorFlow graph"),
    "a cycle": (
        project("m.pb", pb(("a", "Relu", ("b",)), ("b", "Relu", ("a",)))),
        "no input or no output",
    ),
    "an input nobody makes": (
        project("m.pb", pb(("y", "Relu", ("gone",)))),
        "reads a node that does not exist",
    ),
    "a variable": (
        project("m.pb", pb(("x", "Placeholder", ()), ("v", "VariableV2", ()))),
        "is not frozen",
    ),
    "names that are options": (
        project("m.pb", pb(("--help", "Placeholder", ()), ("y", "Relu", ("--help",)))),
        "not a frozen",
    ),
    "a function that calls itself": (
        project("m.pb", pb(("x", "Placeholder", ()), ("f", "f", ("x",))) + field(2, field(1, b""))),
        "",
    ),
}

BUILDS = [
    Case(f"{kind}: {name}", damage, ("build",), 3, (words,))
    for kind, rows in (
        ("onnx", ONNX),
        ("tflite", TFLITE),
        ("caffe", CAFFE),
        ("pb", TENSORFLOW),
    )
    for name, (damage, words) in rows.items()
]

NEW = [
    Case(
        "a link to a secret", linked("/etc/passwd"), ("new", "n", "--model", "m.onnx"), 3, ("link",)
    ),
    Case(
        "weights up the folders",
        lambda folder: (folder / "m.onnx").write_bytes(outside("../project.yaml")),
        ("new", "n", "--model", "m.onnx"),
        3,
        ("is outside the folder",),
    ),
    Case(
        "weights that are not there",
        lambda folder: (folder / "m.onnx").write_bytes(outside("gone.bin")),
        ("new", "n", "--model", "m.onnx"),
        2,
        ("cannot read the model: No such file",),
    ),
]


@pytest.mark.slow(cases=16)
@pytest.mark.parametrize("case", [*BUILDS, *NEW], ids=lambda case: case.name)
def test_a_malformed_model_is_one_error(case: Case, server: Server, tmp_path: Path) -> None:
    check(case, server, tmp_path / "w")
