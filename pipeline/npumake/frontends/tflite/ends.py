"""Starts or ends a network at tensors other than the file's.

A file's tensor includes its fused activation and is channels-last, so it may not be a value of the
graph. The ends are therefore applied before the translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npumake.frontends.tflite.schema import TFLiteModel, TFLiteOperator, TFLiteTensor


def between(network: TFLiteModel, begin: Sequence[str], end: Sequence[str]) -> TFLiteModel:
    """The operators between `begin` or the network's inputs, and `end` or the network's outputs.
    Names in `begin` that no operator computes are ignored; if one in `end` is unknown, the outputs
    stay."""
    tensors = {
        tensor.name: tensor
        for operator in network.operators
        for tensor in operator.outputs
        if tensor.values is None
    }
    inputs = tuple(dict.fromkeys(tensors[name] for name in begin if name in tensors))
    all_there = bool(end) and all(name in tensors for name in end)
    outputs = tuple(dict.fromkeys(tensors[name] for name in end)) if all_there else network.outputs
    if not inputs and outputs == network.outputs:
        return network
    operators = _needed(network.operators, inputs, outputs)
    read = {tensor for operator in operators for tensor in operator.inputs}
    candidates = (*network.inputs, *inputs)
    return replace(
        network,
        inputs=tuple(tensor for tensor in candidates if tensor in read),
        outputs=outputs,
        operators=operators,
    )


def _needed(
    operators: Sequence[TFLiteOperator],
    inputs: Sequence[TFLiteTensor],
    outputs: Sequence[TFLiteTensor],
) -> tuple[TFLiteOperator, ...]:
    needed, used = set(outputs) - set(inputs), list[TFLiteOperator]()
    for operator in reversed(operators):
        if not needed.isdisjoint(operator.outputs):
            used.append(operator)
            needed |= {tensor for tensor in operator.inputs if tensor and tensor not in inputs}
    return tuple(reversed(used))
