"""LSTM: x is (T, N, I…), the result (T, N, H). (Caffe 1.0: lstm_layer, lstm_unit_layer.)

    i, f, o = sigmoid, g = tanh of W_x x_t + b + W_h (k_t h_{t-1})
    c_t = f (k_t c_{t-1}) + i g        h_t = o tanh(c_t)

The second blob k (T, N) marks continued sequences: 0 resets the state. Since k scales the state
before each step, the loop unrolls into T one-step nodes if k exists, and is one node otherwise.
ONNX orders the gates i, o, f, g.
"""

from __future__ import annotations

from math import prod

import numpy as np

from npumake.frontends.caffe.site import LayerSite, Shape
from npumake.graph import TensorSpec, Value, shape

MAX_STEPS = 1024  # of an unrolled loop


def lstm(site: LayerSite) -> Value:
    x, *continues = site.bottoms(1, 2)
    param = site.parameters("recurrent_param")
    if param.expose_hidden:
        raise site.error("exposes its hidden state, which is not supported")
    if len(shape(x)) < 3 or not param.num_output:
        raise site.error(f"has an input of shape {list(shape(x))} and {param.num_output} outputs")
    t, n, *rest = shape(x)
    h, size = param.num_output, prod(rest)
    weights = _weights(site, h, size)
    steps = site.reshaped(x, (t, n, size))
    if not continues:
        whole = _step(site, steps, weights, (), h)[0]
        return site.reshaped(whole, (t, n, h))
    if shape(continues[0]) != (t, n):
        raise site.error(f"has continuation marks {list(shape(continues[0]))} for {[t, n]}")
    if t > MAX_STEPS:
        raise site.error(f"has {t} steps; more than {MAX_STEPS} are not unrolled")
    return _written_out(site, steps, continues[0], weights, h)


def _weights(site: LayerSite, h: int, size: int) -> tuple[Value, ...]:
    x, b, recurrent = site.blobs((4 * h, size), (4 * h,), (4 * h, h))
    bias = np.concatenate([_gates(b), np.zeros(4 * h, np.float32)])
    return (
        site.constant("weight", _gates(x)[None]),
        site.constant("recurrent", _gates(recurrent)[None]),
        site.constant("bias", bias[None]),
    )


def _gates(values: np.ndarray) -> np.ndarray:
    """i, f, o, g → i, o, f, g."""
    i, f, o, g = np.split(values, 4)
    return np.concatenate([i, o, f, g])


def _written_out(
    site: LayerSite, x: Value, continues: Value, weights: tuple[Value, ...], h: int
) -> Value:
    t, n, size = shape(x)
    xs = _split_steps(site, x, (1, n, size))
    marks = _split_steps(site, site.reshaped(continues, (t, n, 1)), (1, n, 1))
    state: tuple[Value, ...] = ()  # zeros at first, independent of the first mark
    hidden_states = []
    for step, mark in zip(xs, marks, strict=True):
        previous = tuple(site.node("Mul", [value, mark], (1, n, h)) for value in state)
        whole, *state_list = _step(site, step, weights, previous, h)
        state = tuple(state_list)
        hidden_states.append(site.reshaped(whole, (1, n, h)))
    return site.node("Concat", hidden_states, (t, n, h), axis=0)


def _split_steps(site: LayerSite, x: Value, dims: Shape) -> tuple[Value, ...]:
    steps = shape(x)[0]
    split = site.numbers("split", [1] * steps)
    return site.nodes("Split", [x, split], [TensorSpec("step", dims)] * steps, axis=0)


def _step(
    site: LayerSite, x: Value, weights: tuple[Value, ...], state: tuple[Value, ...], h: int
) -> tuple[Value, ...]:
    """(outputs, last hidden state, last cell state)."""
    t, n, _ = shape(x)
    last = (1, n, h)
    outputs = [
        TensorSpec("lstm", (t, 1, n, h)),
        TensorSpec("hidden", last),
        TensorSpec("cell", last),
    ]
    return site.nodes(
        "LSTM", [x, *weights, *((None, *state) if state else ())], outputs, hidden_size=h
    )
