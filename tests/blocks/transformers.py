"""Vision: ViT fused and spelled, ConvNeXt, Swin, SegFormer, MobileViT, EfficientFormer."""

from __future__ import annotations

import numpy as np

from blocks.attention import attend, attention, feed_forward, fused_attention, heads, merged
from blocks.net import BRANCH, Block, Net, block, maps, picture, stream


def vit_fused() -> Block:
    """ViT-Ti, two blocks of 196 tokens, with LayerNormalization and Gelu of opset 20."""
    net = Net(1, 20)
    image = net.input("image", (1, 3, 224, 224))
    x = net.conv(image, 3, 192, 16, strides=[16, 16], pads=[0] * 4)
    x = net.transpose(net.reshape(x, 1, 192, 196), 0, 2, 1)
    x = net.node("Add", x, net.constant(net.rng.normal(0, 0.3, (1, 196, 192))))
    for _ in range(2):
        x = net.node("Add", x, fused_attention(net, net.norm(x, 192), 196, 192, 3))
        x = net.node("Add", x, feed_forward(net, net.norm(x, 192), 192, 768, "Gelu"))
    y = net.node("ReduceMean", net.norm(x, 192), net.integers(1), keepdims=0)
    weight = net.weight(1000, 192, fan=192)
    y = net.node("Gemm", y, weight, net.bias(1000), transB=1)
    return block(net.model(logits=y), {"image": picture(1, 3, 224, 224)})


class _Spelled(Net):
    """As exporters wrote norms before opset 17."""

    def norm(self, x: str, count: int) -> str:
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        square = self.node("Pow", centred, self.constant(2.0))
        variance = self.node("ReduceMean", square, axes=[-1])
        root = self.node("Sqrt", self.node("Add", variance, self.constant(1e-5)))
        y = self.node("Mul", self.node("Div", centred, root), self.gamma(count))
        return self.node("Add", y, self.bias(count))


def vit_spelled() -> Block:
    """The same at opset 11: norms and Gelu in primitive operators."""
    net = _Spelled(2, 11)
    x = net.input("tokens", (1, 196, 192))
    for _ in range(2):
        x = net.node("Add", x, fused_attention(net, net.norm(x, 192), 196, 192, 3))
        x = net.node("Add", x, feed_forward(net, net.norm(x, 192), 192, 768))
    return block(net.model(y=net.norm(x, 192)), {"tokens": stream(1, 196, 192)})


def convnext() -> Block:
    """ConvNeXt-T: two blocks at 56x56x96 and the way down to 28x28x192."""
    net = Net(3)
    x = net.input("x", (1, 96, 56, 56))
    for _ in range(2):
        y = net.conv(x, 96, 96, 7, group=96)
        y = net.norm(net.transpose(y, 0, 2, 3, 1), 96)
        y = net.linear(net.gelu(net.linear(y, 96, 384)), 384, 96)
        y = net.node("Mul", net.constant(net.rng.uniform(0.05, BRANCH, 96)), y)
        x = net.node("Add", x, net.transpose(y, 0, 3, 1, 2))
    y = net.transpose(net.norm(net.transpose(x, 0, 2, 3, 1), 96), 0, 3, 1, 2)
    y = net.conv(y, 96, 192, 2, strides=[2, 2], pads=[0] * 4)
    return block(net.model(y=y), {"x": stream(1, 96, 56, 56, axis=1)})


def _windows(net: Net, x: str) -> str:
    """(1, 56, 56, 96) as (64, 49, 96)."""
    y = net.transpose(net.reshape(x, 1, 8, 7, 8, 7, 96), 0, 1, 3, 2, 4, 5)
    return net.reshape(y, -1, 49, 96)


def _joined(net: Net, x: str) -> str:
    y = net.transpose(net.reshape(x, 1, 8, 8, 7, 7, 96), 0, 1, 3, 2, 4, 5)
    return net.reshape(y, 1, 56, 56, 96)


def _rolled(net: Net, x: str, by: int) -> str:
    for axis in (1, 2):
        parts = net.slice(x, by, 2**31 - 1, axis), net.slice(x, 0, by, axis)
        x = net.node("Concat", *parts, axis=axis)
    return x


def _shift_mask() -> np.ndarray:
    """-100 between tokens of a window that come from unlike regions, (1, 64, 1, 49, 49)."""
    edge = np.repeat([0, 1, 2], [49, 4, 3])
    region = (edge[:, None] * 3 + edge).reshape(8, 7, 8, 7).transpose(0, 2, 1, 3).reshape(64, 49)
    return np.where(region[:, None] == region[:, :, None], 0.0, -100.0)[None, :, None]


def _window_attention(net: Net, x: str, is_shifted: bool) -> str:
    qkv = net.reshape(net.linear(x, 96, 288), 64, 49, 3, 3, 32)
    parts = net.transpose(qkv, 2, 0, 3, 1, 4)
    q, k, v = (net.node("Gather", parts, net.constant(at, "int64"), axis=0) for at in range(3))
    scores = net.node("MatMul", net.scaled(q, 32**-0.5), net.transpose(k, 0, 1, 3, 2))
    table = net.rng.normal(0, 0.5, (169, 3))
    at = np.stack(np.meshgrid(range(7), range(7), indexing="ij")).reshape(2, 49)
    apart = at[:, :, None] - at[:, None] + 6
    bias = table[apart[0] * 13 + apart[1]].transpose(2, 0, 1)[None]
    scores = net.node("Add", scores, net.constant(bias))
    if is_shifted:
        scores = net.node("Add", net.reshape(scores, 1, 64, 3, 49, 49), net.constant(_shift_mask()))
        scores = net.reshape(scores, -1, 3, 49, 49)
    y = net.node("MatMul", net.node("Softmax", scores, axis=-1), v)
    y = net.reshape(net.transpose(y, 0, 2, 1, 3), 64, 49, 96)
    return net.linear(y, 96, 96, BRANCH)


def swin() -> Block:
    """Swin-T at 56x56x96: a block of windows, and one of shifted windows."""
    net = Net(4)
    x = net.input("x", (1, 3136, 96))
    for by in (0, 3):
        y = net.reshape(net.norm(x, 96), 1, 56, 56, 96)
        y = _rolled(net, y, by) if by else y
        y = _joined(net, _window_attention(net, _windows(net, y), bool(by)))
        y = _rolled(net, y, -by) if by else y
        x = net.node("Add", x, net.reshape(y, 1, 3136, 96))
        x = net.node("Add", x, feed_forward(net, net.norm(x, 96), 96, 384))
    return block(net.model(y=x), {"x": stream(1, 3136, 96)})


def _mix_ffn(net: Net, x: str) -> str:
    y = net.reshape(net.transpose(net.linear(x, 64, 256), 0, 2, 1), 1, 256, 64, 64)
    y = net.conv(y, 256, 256, 3, group=256)
    y = net.transpose(net.reshape(y, 1, 256, 4096), 0, 2, 1)
    return net.linear(net.gelu(y), 256, 64, BRANCH)


def segformer() -> Block:
    """SegFormer at 64x64x64: attention over a map reduced by 8, Mix-FFN, and a head."""
    net = Net(5)
    image = net.input("x", (1, 64, 64, 64))
    x = net.transpose(net.reshape(image, 1, 64, 4096), 0, 2, 1)
    for _ in range(2):
        y = net.norm(x, 64)
        q = heads(net, net.linear(y, 64, 64), 4096, 2, 32)
        r = net.reshape(net.transpose(y, 0, 2, 1), 1, 64, 64, 64)
        r = net.conv(r, 64, 64, 8, strides=[8, 8], pads=[0] * 4)
        r = net.norm(net.transpose(net.reshape(r, 1, 64, 64), 0, 2, 1), 64)
        k, v = (heads(net, net.linear(r, 64, 64), 64, 2, 32) for _ in range(2))
        y = merged(net, attend(net, q, k, v, 32), 4096, 64)
        x = net.node("Add", x, net.linear(y, 64, 64, BRANCH))
        x = net.node("Add", x, _mix_ffn(net, net.norm(x, 64)))
    y = net.reshape(net.transpose(net.norm(x, 64), 0, 2, 1), 1, 64, 64, 64)
    y = net.node("Relu", net.batch_norm(net.conv(y, 64, 128), 128))
    y = net.conv(y, 128, 19)
    sizes = net.integers(1, 19, 128, 128)
    more = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    y = net.node("Resize", y, "", "", sizes, **more)
    return block(net.model(classes=y), {"x": stream(1, 64, 64, 64, axis=1)})


def mobilevit() -> Block:
    """MobileViT-XXS at 32x32x48: patches of 2x2 unfolded, two blocks 64 wide, folded."""
    net = Net(6)
    image = net.input("x", (1, 48, 32, 32))
    x = net.conv(net.conv_silu(image, 48, 48, 3), 48, 64)
    x = net.transpose(net.reshape(x, 1024, 2, 16, 2), 0, 2, 1, 3)
    x = net.transpose(net.reshape(x, 1, 64, 256, 4), 0, 3, 2, 1)
    x = net.reshape(x, 4, 256, 64)
    for _ in range(2):
        q, k, v = (
            net.transpose(net.reshape(net.linear(y, 64, 64), 4, 256, 4, 16), 0, 2, 1, 3)
            for y in [net.norm(x, 64)] * 3
        )
        y = net.transpose(attend(net, q, k, v, 16), 0, 2, 1, 3)
        x = net.node("Add", x, net.linear(net.reshape(y, 4, 256, 64), 64, 64, BRANCH))
        x = net.node("Add", x, feed_forward(net, net.norm(x, 64), 64, 128, "swish"))
    x = net.transpose(net.reshape(net.norm(x, 64), 1, 4, 256, 64), 0, 3, 2, 1)
    x = net.transpose(net.reshape(x, 1024, 16, 2, 2), 0, 2, 1, 3)
    x = net.conv_silu(net.reshape(x, 1, 64, 32, 32), 64, 48)
    x = net.conv_silu(net.node("Concat", image, x, axis=1), 96, 48, 3)
    return block(net.model(y=x), {"x": maps(1, 48, 32, 32)})


def _meta_4d(net: Net, x: str) -> str:
    """The mixer of pooling, AveragePool(x) - x, and an MLP of 1x1 Convs, with layer scale."""
    pooled = net.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=0)
    scales = [net.constant(net.rng.uniform(0.1, BRANCH, (48, 1, 1))) for _ in range(2)]
    x = net.node("Add", x, net.node("Mul", scales[0], net.node("Sub", pooled, x)))
    y = net.gelu(net.batch_norm(net.conv(x, 48, 192), 192))
    y = net.batch_norm(net.conv(y, 192, 48), 48)
    return net.node("Add", x, net.node("Mul", scales[1], y))


def efficientformer() -> Block:
    """EfficientFormer-L1: two blocks of pooling at 28x28x48, then attention with biases at 7x7."""
    net = Net(7)
    x = net.input("x", (1, 48, 28, 28))
    for _ in range(2):
        x = _meta_4d(net, x)
    x = net.batch_norm(net.conv(x, 48, 224, 3, strides=[4, 4], pads=[1] * 4), 224)
    x = net.transpose(net.reshape(x, 1, 224, 49), 0, 2, 1)
    for _ in range(2):
        bias = net.constant(net.rng.normal(0, 0.5, (1, 8, 49, 49)))
        y = net.norm(x, 224)
        x = net.node("Add", x, attention(net, (y, y, y), (49, 49), 224, 8, bias))
        x = net.node("Add", x, feed_forward(net, net.norm(x, 224), 224, 896))
    y = net.node("ReduceMean", net.norm(x, 224), axes=[1], keepdims=0)
    return block(net.model(logits=net.linear(y, 224, 1000)), {"x": maps(1, 48, 28, 28)})
