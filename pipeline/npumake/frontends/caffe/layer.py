"""The layers of a network, from any of Caffe's three forms.

    V0       layers { layer { name: "c" type: "conv" kernelsize: 3 } bottom: "x" top: "c" }
    V1       layers { name: "c" type: CONVOLUTION convolution_param { kernel_size: 3 } … }
    current  layer  { name: "c" type: "Convolution" convolution_param { kernel_size: 3 } … }

Only layers of the test phase, in file order, which is the execution order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from npumake.errors import GraphError
from npumake.frontends.caffe.messages import ENUMS, Message, layer_message

TEST = ENUMS["Phase"].split().index("TEST")

# Exceptions to CamelCase of the words.
_V1_NAMES = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "TANH": "TanH",
}

_WINDOW = {"kernelsize": "kernel_size", "stride": "stride", "pad": "pad"}
_OUTPUT = {"num_output": "num_output", "biasterm": "bias_term"}

# V0 type → current type, its parameter message, and the current names of its fields.
_V0: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "bnll": ("BNLL", "", {}),
    "concat": ("Concat", "concat_param", {"concat_dim": "concat_dim"}),
    "conv": ("Convolution", "convolution_param", {**_OUTPUT, **_WINDOW, "group": "group"}),
    "dropout": ("Dropout", "", {}),
    "flatten": ("Flatten", "", {}),
    "innerproduct": ("InnerProduct", "inner_product_param", _OUTPUT),
    "lrn": ("LRN", "lrn_param", {name: name for name in ("local_size", "alpha", "beta", "k")}),
    "pool": ("Pooling", "pooling_param", {**_WINDOW, "pool": "pool"}),
    "relu": ("ReLU", "", {}),
    "sigmoid": ("Sigmoid", "", {}),
    "softmax": ("Softmax", "", {}),
    "split": ("Split", "", {}),
    "tanh": ("TanH", "", {}),
}


@dataclass(frozen=True)
class CaffeLayer:
    """`message` holds the parameters, in current messages such as `convolution_param`."""

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    message: Any


def layers_of(net: Message, file: str) -> list[CaffeLayer]:
    """The layers of the test phase. Raises GraphError for two forms in one file."""
    if net.layers and net.layer:
        hint = "write every layer as `layer { … }`"
        raise GraphError("the network mixes `layers` with `layer`", file, hint)
    old = [layer for layer in net.layers if _is_tested(layer)]
    if any(layer.HasField("layer") for layer in old):
        return _without_padding([_from_v0(layer) for layer in old])
    v1 = [_layer(layer, layer.name, _v1_type(layer.type)) for layer in old]
    return v1 + [
        _layer(message, message.name, message.type) for message in net.layer if _is_tested(message)
    ]


def _is_tested(message: Message) -> bool:
    if message.include:
        return any(map(_holds, message.include))
    return not any(map(_holds, message.exclude))


def _holds(rule: Message) -> bool:
    """Whether the rule includes level 0 of the test phase, without a stage."""
    return (
        (not rule.HasField("phase") or rule.phase == TEST)
        and (not rule.HasField("min_level") or rule.min_level <= 0)
        and (not rule.HasField("max_level") or rule.max_level >= 0)
        and not rule.stage
    )


def _layer(message: Message, name: str, kind: str) -> CaffeLayer:
    return CaffeLayer(name, kind, tuple(message.bottom), tuple(message.top), message)


def _v1_type(number: int) -> str:
    name = ENUMS["V1Type"].split()[number]
    return _V1_NAMES.get(name, name.title().replace("_", ""))


def _from_v0(connection: Message) -> CaffeLayer:
    old, message = connection.layer, layer_message()
    kind, target, fields = _V0.get(old.type, (old.type, "", {}))
    for name, today in fields.items():
        if old.HasField(name):
            _set(getattr(message, target), today, getattr(old, name))
    if old.type == "padding":
        message.convolution_param.pad.append(old.pad)
    return CaffeLayer(old.name, kind, tuple(connection.bottom), tuple(connection.top), message)


def _set(message: Message, name: str, value: Any) -> None:
    if name in _WINDOW.values():  # per axis in the current form
        getattr(message, name).append(value)
    else:
        setattr(message, name, value)


def _without_padding(layers: Iterable[CaffeLayer]) -> list[CaffeLayer]:
    """Merges V0's separate padding layers into the `pad` of the next layer."""
    padded: dict[str, CaffeLayer] = {}
    remaining = []
    for layer in layers:
        if layer.type == "padding" and len(layer.bottoms) == len(layer.tops) == 1:
            padded[layer.tops[0]] = layer
            continue
        before = padded.get(layer.bottoms[0]) if layer.bottoms else None
        if before is not None and layer.type in ("Convolution", "Pooling"):
            field = "convolution_param" if layer.type == "Convolution" else "pooling_param"
            getattr(layer.message, field).pad[:] = before.message.convolution_param.pad
            layer = CaffeLayer(layer.name, layer.type, before.bottoms, layer.tops, layer.message)
        remaining.append(layer)
    return remaining
