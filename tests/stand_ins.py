"""A small model in the place of one that a vendor's file names: its inputs and its nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from npumake.digest import Json

CHANNELS, SIDE = 4, 64
UNARY = ("Relu", "Sigmoid", "Softmax")
BINARY = ("Add", "Div", "Mul")


class Row(NamedTuple):
    """The tensor that the next node reads."""

    tensor: str
    is_image: bool


def named_nodes(native: Json) -> list[str]:
    """The nodes that a project of hb_mapper or hb_compile names, without operators."""
    asked, border = native.get("quantization", {}), native.get("compile", {})
    named = [*asked.get("optional", ()), *border.get("remove_nodes", ())]
    plain = (re.sub("_output_0_HzCalibration$", "", name) for name in named)
    return list(dict.fromkeys(name for name in plain if not name.endswith("(*)")))


def stand_in(inputs: Json, names: Sequence[str] = (), outputs: Collection[str] = ()) -> bytes:
    """A layer per input; behind the first image, or the first input, the nodes `names` in a row.

    `inputs` is the section of a project; `*` is called images. Nodes of `outputs` make outputs.
    """
    nodes: list[NodeProto] = []
    feeds: list[ValueInfoProto] = []
    weights = {"one": np.array(1.5, np.float32), "square": _weight(CHANNELS)}
    rows: list[Row] = []
    for number, (name, section) in enumerate(inputs.items()):
        dims = section.get("shape") or _picture(section)
        feed, last = "images" if name == "*" else name, section.get("layout") == "NHWC"
        feeds.append(helper.make_tensor_value_info(feed, TensorProto.FLOAT, dims))
        weights[f"w{number}"] = _weight(dims[3 if last else 1]) if len(dims) == 4 else _weight(1)
        nodes += _stem(feed, number, last) if len(dims) == 4 else _flat_stem(feed, number)
        rows.append(Row(f"stem{number}", len(dims) == 4))
    row = next((each for each in rows if each.is_image), rows[0])
    ends = [each.tensor for each in rows if each is not row]
    for name in names:
        nodes.append(_node(name, row))
        if name in outputs:
            ends.append(f"{name}_output_0")
        else:
            row = row._replace(tensor=f"{name}_output_0")
    nodes.append(helper.make_node("Sigmoid", [row.tensor], ["final"], "final"))
    made = [helper.make_tensor_value_info(end, TensorProto.FLOAT, None) for end in [*ends, "final"]]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "stand_in", feeds, made, held)
    opsets = [helper.make_opsetid("", 11)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString())


def _weight(channels: int) -> np.ndarray:
    numbers = np.random.default_rng(channels).normal(size=(CHANNELS, channels, 1, 1))
    return numbers.astype(np.float32)


def _picture(section: Json) -> list[int]:
    channels = 1 if section.get("type") == "gray" else 3
    sides = {"N": 1, "C": channels, "H": SIDE, "W": SIDE}
    return [sides[letter] for letter in section.get("layout") or "NCHW"]


def _stem(feed: str, number: int, channels_last: bool) -> list[NodeProto]:
    turned = f"turned{number}"
    turn = helper.make_node("Transpose", [feed], [turned], turned, perm=[0, 3, 1, 2])
    read = [turned if channels_last else feed, f"w{number}"]
    conv = helper.make_node("Conv", read, [f"stem{number}"], f"stem{number}")
    return [turn, conv] if channels_last else [conv]


def _flat_stem(feed: str, number: int) -> list[NodeProto]:
    return [helper.make_node("Relu", [feed], [f"stem{number}"], f"stem{number}")]


def _node(name: str, row: Row) -> NodeProto:
    """The operator is the last word of the name, else a Conv."""
    words = re.split(r"[/.]", name)
    operator = next((word for word in (*UNARY, *BINARY) if words[-1].startswith(word)), "")
    operator = operator or next((word for word in UNARY if word in words), "")
    output = [f"{name}_output_0"]
    if operator in BINARY:
        return helper.make_node(operator, [row.tensor, "one"], output, name)
    if operator == "Softmax":
        return helper.make_node(operator, [row.tensor], output, name, axis=int(row.is_image))
    if operator or not row.is_image:
        return helper.make_node(operator or "Relu", [row.tensor], output, name)
    return helper.make_node("Conv", [row.tensor, "square"], output, name)
