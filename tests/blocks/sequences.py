"""Sequences: GPT with a KV cache, Conformer, BiLSTM, GRU, and audio front ends."""

from __future__ import annotations

import numpy as np

from blocks.attention import attention, heads, merged
from blocks.net import BRANCH, Block, Drawing, Net, block, stream

PAST, NEW = 112, 16  # tokens in the cache, and those of this run
RATE, WINDOW, HOP, BINS, MELS = 16000, 400, 160, 201, 80


def _rotated(net: Net, x: str, cosine: str, sine: str) -> str:
    """x cos + rotate_half(x) sin, of heads 64 wide (RoPE as Llama's export spells it)."""
    low, high = net.slice(x, 0, 32, 3), net.slice(x, 32, 2**31 - 1, 3)
    turned = net.node("Concat", net.node("Neg", high), low, axis=-1)
    return net.node("Add", net.node("Mul", x, cosine), net.node("Mul", turned, sine))


def _repeated(net: Net, x: str, count: int) -> str:
    """(1, 2, length, 64) as (1, 8, length, 64): each head of keys serves four of queries."""
    length = PAST + NEW
    y = net.node("Unsqueeze", x, net.integers(2))
    y = net.node("Expand", y, net.integers(1, 2, count, length, 64))
    return net.reshape(y, 1, 2 * count, length, 64)


def _cached_attention(net: Net, x: str, layer: int, turns: tuple[str, str]) -> tuple[str, str, str]:
    """Behind the projection; and the caches (1, 2, PAST + NEW, 64) of keys and values."""
    q = heads(net, net.node("MatMul", x, net.weight(512, 512, fan=512, axis=1)), NEW, 8, 64)
    k, v = (
        heads(net, net.node("MatMul", x, net.weight(512, 128, fan=512, axis=1)), NEW, 2, 64)
        for _ in range(2)
    )
    q, k = (_rotated(net, each, *turns) for each in (q, k))
    past = [net.input(f"past_{layer}_{kind}", (1, 2, PAST, 64)) for kind in ("key", "value")]
    keys = net.node("Concat", past[0], k, axis=2)
    values = net.node("Concat", past[1], v, axis=2)
    whole = [_repeated(net, each, 4) for each in (keys, values)]
    scores = net.node("MatMul", q, net.transpose(whole[0], 0, 1, 3, 2))
    scores = net.node("Div", scores, net.constant(8.0))
    ahead = np.arange(PAST + NEW) > np.arange(NEW)[:, None] + PAST
    scores = net.node("Add", scores, net.constant(np.where(ahead, -3.4028235e38, 0)[None, None]))
    y = merged(net, net.node("MatMul", net.node("Softmax", scores, axis=-1), whole[1]), NEW, 512)
    weight = net.weight(512, 512, fan=512, gain=BRANCH, axis=1)
    return net.node("MatMul", y, weight), keys, values


def gpt() -> Block:
    """Two layers 512 wide: RMSNorm, RoPE, eight heads that share two of keys, SwiGLU, caches."""
    net = Net(21)
    x = net.input("embeddings", (1, NEW, 512))
    places = net.input("position_ids", (1, NEW), "int64")
    angles = np.arange(256)[:, None] / 10000 ** (np.arange(32) / 32)
    tables = (np.tile(f(angles), 2) for f in (np.cos, np.sin))
    axis = net.integers(1)
    cosine, sine = (
        net.node("Unsqueeze", net.node("Gather", net.constant(t), places, axis=0), axis)
        for t in tables
    )
    outputs: dict[str, str] = {}
    for layer in range(2):
        y, keys, values = _cached_attention(net, net.rms_norm(x, 512), layer, (cosine, sine))
        outputs |= {f"present_{layer}_key": keys, f"present_{layer}_value": values}
        x = net.node("Add", x, y)
        y = net.rms_norm(x, 512)
        gate, up = (net.node("MatMul", y, net.weight(512, 1376, fan=512, axis=1)) for _ in range(2))
        y = net.node("Mul", net.swish(gate), up)
        weight = net.weight(1376, 512, fan=1376, gain=BRANCH, axis=1)
        x = net.node("Add", x, net.node("MatMul", y, weight))
    drawings: dict[str, Drawing] = {
        "embeddings": stream(1, NEW, 512),
        "position_ids": lambda rng: rng.integers(0, 120) + np.arange(NEW)[None],
    }
    for name in net.inputs:
        if name.startswith("past"):
            drawings[name] = stream(1, 2, PAST, 64)
    return block(net.model(hidden=net.rms_norm(x, 512), **outputs), drawings)


def _convolved(net: Net, x: str) -> str:
    """The convolution module of a Conformer, 144 wide, over 200 frames."""
    y = net.node("Unsqueeze", net.transpose(net.norm(x, 144), 0, 2, 1), net.integers(2))
    y = net.conv(y, 144, 288)
    value, gate = net.several("Split", [y, net.integers(144, 144)], 2, axis=1)
    y = net.node("Mul", value, net.node("Sigmoid", gate))
    weight = net.weight(144, 1, 1, 31, fan=31, gain=1.6)
    y = net.node("Conv", y, weight, net.bias(144), group=144, pads=[0, 15, 0, 15])
    y = net.conv(net.swish(net.batch_norm(y, 144)), 144, 144, gain=BRANCH)
    return net.transpose(net.node("Squeeze", y, net.integers(2)), 0, 2, 1)


def conformer() -> Block:
    """A Conformer-S block of 200 frames: half steps, attention with biases, convolution."""
    net = Net(22)
    x = net.input("frames", (1, 200, 144))
    for _ in range(2):
        x = _half_step(net, x)
        y = net.norm(x, 144)
        bias = net.constant(net.rng.normal(0, 0.5, (1, 4, 200, 200)))
        x = net.node("Add", x, attention(net, (y, y, y), (200, 200), 144, 4, bias))
        x = net.node("Add", x, _convolved(net, x))
        x = net.norm(_half_step(net, x), 144)
    return block(net.model(y=x), {"frames": stream(1, 200, 144)})


def _half_step(net: Net, x: str) -> str:
    y = net.swish(net.linear(net.norm(x, 144), 144, 576, 1.5))
    return net.node("Add", x, net.scaled(net.linear(y, 576, 144), 0.5))


def _recurrent(net: Net, op: str, gates: int, x: str, size: int) -> str:
    """Two directions of 64 units over 100 steps, as (100, 1, 128)."""
    held = [
        net.constant(net.rng.normal(size=(2, gates * 64, n)) * 1.2 / n**0.5) for n in (size, 64)
    ]
    bias = net.constant(net.rng.normal(0, 0.2, (2, 2 * gates * 64)))
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    y = net.node(op, x, *held, bias, hidden_size=64, direction="bidirectional", **more)
    return net.reshape(net.transpose(y, 0, 2, 1, 3), 100, 1, 128)


def _tagger(seed: int, op: str, gates: int) -> Block:
    net = Net(seed, 14)
    x = net.transpose(net.input("features", (1, 100, 80)), 1, 0, 2)
    x = _recurrent(net, op, gates, x, 80)
    x = _recurrent(net, op, gates, x, 128)
    y = net.linear(net.transpose(x, 1, 0, 2), 128, 40, 2.0)
    return block(net.model(logits=y), {"features": stream(1, 100, 80)})


def bilstm() -> Block:
    """Two bidirectional LSTM of 64 units over 100 frames, and a classifier."""
    return _tagger(23, "LSTM", 4)


def gru() -> Block:
    """Two bidirectional GRU of 64 units over 100 frames, and a classifier."""
    return _tagger(24, "GRU", 3)


def _tones(rng: np.random.Generator) -> np.ndarray:
    """One second of tones that fade, over noise."""
    time = np.arange(RATE) / RATE
    whole = rng.normal(0, 0.01, RATE)
    for _ in range(12):
        start, pitch = rng.uniform(0, 0.8), np.exp(rng.uniform(np.log(80), np.log(6000)))
        fade = np.where(time > start, np.exp(-8 * np.maximum(time - start, 0)), 0)
        whole += rng.uniform(0.02, 0.2) * fade * np.sin(2 * np.pi * pitch * time)
    return whole.astype(np.float32)[None]


def _transform() -> np.ndarray:
    """Cosines and sines under a Hann window, (2 * BINS, WINDOW)."""
    angle = 2 * np.pi * np.outer(np.arange(BINS), np.arange(WINDOW)) / WINDOW
    return np.concatenate([np.cos(angle), -np.sin(angle)]) * np.hanning(WINDOW)


def _mel() -> np.ndarray:
    """Triangles on the mel scale, (BINS, MELS)."""
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, top, MELS + 2) / 2595) - 1)
    at = np.linspace(0, RATE / 2, BINS)[:, None]
    low, middle, high = corners[:-2], corners[1:-1], corners[2:]
    rises, falls = (at - low) / (middle - low), (high - at) / (high - middle)
    return np.maximum(0, np.minimum(rises, falls))


def _log_mel(net: Net, power: str) -> str:
    """Of power (1, frames, BINS), normalized, before a first layer of a recognizer."""
    mel = net.node("MatMul", power, net.constant(_mel()))
    log = net.node("Log", net.node("Add", mel, net.constant(1e-3)))
    return net.node("Div", net.node("Add", log, net.constant(3.0)), net.constant(3.0))


def audio_conv() -> Block:
    """Log-mel with framing and DFT as one strided Conv."""
    net = Net(25)
    wave = net.reshape(net.input("wave", (1, RATE)), 1, 1, 1, RATE)
    weight = net.constant(_transform()[:, None, None])
    both = net.node("Conv", wave, weight, strides=[1, HOP], kernel_shape=[1, WINDOW])
    square = net.node("Mul", both, both)
    parts = net.slice(square, 0, BINS, 1), net.slice(square, BINS, 2 * BINS, 1)
    power = net.node("Squeeze", net.node("Add", *parts), net.integers(2))
    y = _log_mel(net, net.transpose(power, 0, 2, 1))
    return block(net.model(mel=y), {"wave": _tones})


def audio_frames() -> Block:
    """Log-mel with framing as Gather, the DFT as two MatMuls, and a first layer behind it."""
    net = Net(26)
    wave = net.input("wave", (1, RATE))
    count = (RATE - WINDOW) // HOP + 1
    at = np.arange(WINDOW) + HOP * np.arange(count)[:, None]
    frames = net.node("Gather", wave, net.constant(at, "int64"), axis=1)
    parts = np.split(_transform().T, 2, axis=1)
    real, imaginary = (net.node("MatMul", frames, net.constant(part)) for part in parts)
    two = net.constant(2.0)
    power = net.node("Add", net.node("Pow", real, two), net.node("Pow", imaginary, two))
    y = _log_mel(net, power)
    y = net.node("Relu", net.linear(y, MELS, 128))
    return block(net.model(features=y), {"wave": _tones})
