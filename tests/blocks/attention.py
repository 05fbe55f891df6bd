"""Attention, the part that most blocks share."""

from __future__ import annotations

from blocks.net import BRANCH, Net


def heads(net: Net, x: str, length: int, count: int, width: int) -> str:
    """(1, length, count * width) as (1, count, length, width)."""
    return net.transpose(net.reshape(x, 1, length, count, width), 0, 2, 1, 3)


def merged(net: Net, x: str, length: int, channels: int) -> str:
    return net.reshape(net.transpose(x, 0, 2, 1, 3), 1, length, channels)


def attend(net: Net, query: str, key: str, value: str, width: int, mask: str = "") -> str:
    """softmax(q kᵀ / √width + mask) v, of heads."""
    scores = net.node("MatMul", query, net.transpose(key, 0, 1, 3, 2))
    scores = net.scaled(scores, width**-0.5)
    if mask:
        scores = net.node("Add", scores, mask)
    return net.node("MatMul", net.node("Softmax", scores, axis=-1), value)


def attention(
    net: Net,
    sources: tuple[str, str, str],
    lengths: tuple[int, int],
    channels: int,
    count: int,
    mask: str = "",
) -> str:
    """Of (query, key, value) before their projections, behind the output's projection."""
    width, (asked, read) = channels // count, lengths
    q, k, v = (
        heads(net, net.linear(x, channels, channels), length, count, width)
        for x, length in zip(sources, (asked, read, read), strict=True)
    )
    y = merged(net, attend(net, q, k, v, width, mask), asked, channels)
    return net.linear(y, channels, channels, BRANCH)


def fused_attention(net: Net, x: str, length: int, channels: int, count: int) -> str:
    """q, k and v of one projection, as timm exports it."""
    width = channels // count
    qkv = net.reshape(net.linear(x, channels, 3 * channels), 1, length, 3, count, width)
    parts = net.transpose(qkv, 2, 0, 3, 1, 4)
    q, k, v = (net.node("Gather", parts, net.constant(at, "int64"), axis=0) for at in range(3))
    y = merged(net, attend(net, q, k, v, width), length, channels)
    return net.linear(y, channels, channels, BRANCH)


def feed_forward(net: Net, x: str, channels: int, inner: int, act: str = "gelu") -> str:
    y = net.linear(x, channels, inner)
    y = net.node(act, y) if act[0].isupper() else getattr(net, act)(y)
    return net.linear(y, inner, channels, BRANCH)
