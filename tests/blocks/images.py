"""Pictures to pictures: a U-Net and super-resolution."""

from __future__ import annotations

from blocks.net import Block, Net, block, picture


def _twice(net: Net, x: str, n: int, m: int) -> str:
    for before in (n, m):
        x = net.node("Relu", net.batch_norm(net.conv(x, before, m, 3, 1.4), m))
    return x


def unet() -> Block:
    """Three levels from 128x128: down by MaxPool, up by ConvTranspose and by Resize."""
    net = Net(31)
    image = net.input("image", (1, 3, 128, 128))
    first = _twice(net, image, 3, 32)
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    second = _twice(net, net.node("MaxPool", first, **pool), 32, 64)
    x = _twice(net, net.node("MaxPool", second, **pool), 64, 128)
    weight = net.weight(128, 64, 2, 2, fan=128, axis=1)
    up = net.node("ConvTranspose", x, weight, net.bias(64), kernel_shape=[2, 2], strides=[2, 2])
    x = _twice(net, net.node("Concat", second, up, axis=1), 128, 64)
    more = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    up = net.node("Resize", x, "", net.constant([1, 1, 2, 2]), **more)
    x = _twice(net, net.node("Concat", first, up, axis=1), 96, 32)
    masks = net.node("Sigmoid", net.conv(x, 32, 2, gain=2.0))
    return block(net.model(masks=masks), {"image": picture(1, 3, 128, 128)})


def super_resolution() -> Block:
    """64x64 to 128x128: residual blocks of ESRGAN's kind, PixelShuffle, over a bilinear picture."""
    net = Net(32)
    image = net.input("image", (1, 3, 64, 64))
    x = start = net.conv(image, 3, 64, 3)
    for _ in range(3):
        y = net.node("LeakyRelu", net.conv(x, 64, 64, 3, 1.4), alpha=0.2)
        y = net.conv(y, 64, 64, 3)
        x = net.node("Add", x, net.scaled(y, 0.2))
    x = net.node("Add", start, net.conv(x, 64, 64, 3, 0.5))
    x = net.node("DepthToSpace", net.conv(x, 64, 256, 3), blocksize=2, mode="CRD")
    x = net.conv(net.node("LeakyRelu", x, alpha=0.2), 64, 3, 3, 0.2)
    more = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    plain = net.node("Resize", image, "", net.constant([1, 1, 2, 2]), **more)
    y = net.node("Clip", net.node("Add", x, plain), net.constant(-1.0), net.constant(1.0))
    return block(net.model(large=y), {"image": picture(1, 3, 64, 64)})
