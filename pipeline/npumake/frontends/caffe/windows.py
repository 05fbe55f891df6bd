"""Layers with a sliding window: convolution, pooling and their inverses.

Along one axis, with input i, kernel k, stride s, pad p, dilation d:

    Convolution    o = floor((i + 2p - (d (k - 1) + 1)) / s) + 1
    Deconvolution  o = s (i - 1) + d (k - 1) + 1 - 2p
    Pooling        o = ceil((i + 2p - k) / s) + 1, less one if p > 0 and the last window would
                   start in the padding behind the input: (o - 1) s >= i + p

So Pooling may read e = (o - 1) s + k - i - p cells behind the input, more or fewer than p. An
average divides by the window's cells within the input and p on either side; cells beyond do not
count. (Caffe 1.0: base_conv_layer, pooling_layer, spp_layer.)
"""

from __future__ import annotations

from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from npumake.frontends.caffe.messages import ENUMS
from npumake.frontends.caffe.site import LayerSite, Shape
from npumake.graph import TensorSpec, Value, shape

POOL_MAX, POOL_AVERAGE = (ENUMS["PoolMethod"].split().index(name) for name in ("MAX", "AVE"))
WITHIN_CHANNEL = ENUMS["NormRegion"].split().index("WITHIN_CHANNEL")


def convolution(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("convolution_param")
    n, c, *size = _image(site, x)
    k, s, p, d = (_sizes(site, param, field, len(size)) for field in _CONVOLUTION)
    o = tuple(
        (i + 2 * p - (d * (k - 1) + 1)) // s + 1
        for i, k, s, p, d in zip(size, k, s, p, d, strict=True)
    )
    _check_groups(site, param, c)
    weight = (param.num_output, c // param.group, *k)
    return _convolved(site, "Conv", weight, (n, param.num_output, *o), (k, s, p, d))


def deconvolution(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("convolution_param")
    n, c, *size = _image(site, x)
    k, s, p, d = (_sizes(site, param, field, len(size)) for field in _CONVOLUTION)
    o = tuple(
        s * (i - 1) + d * (k - 1) + 1 - 2 * p
        for i, k, s, p, d in zip(size, k, s, p, d, strict=True)
    )
    _check_groups(site, param, c)
    weight = (c, param.num_output // param.group, *k)
    return _convolved(site, "ConvTranspose", weight, (n, param.num_output, *o), (k, s, p, d))


def pooling(site: LayerSite) -> Value | tuple[Value, ...]:
    """Maximum or average; the second top holds the index of each maximum in its channel."""
    x, param = site.bottom(), site.parameters("pooling_param")
    if param.pool not in (POOL_MAX, POOL_AVERAGE):
        raise site.error("pools stochastically, which is not supported", "use MAX or AVE")
    n, c, *size = _image(site, x)
    if param.global_pooling and site.tops == 1:
        op_type = "GlobalMaxPool" if param.pool == POOL_MAX else "GlobalAveragePool"
        return site.node(op_type, [x], (n, c, *(1 for _ in size)))
    k = tuple(size) if param.global_pooling else _sizes(site, param, _KERNEL, len(size))
    s, p = (_sizes(site, param, field, len(size)) for field in (_STRIDE, _PAD))
    if param.pool == POOL_MAX and site.tops == 2:
        return _located(site, x, (k, s, p))
    return _pooled(site, x, param.pool, (k, s, p))


def spatial_pyramid(site: LayerSite) -> Value:
    """2^l x 2^l bins for each level l, flattened and concatenated."""
    x, param = site.bottom(), site.parameters("spp_param")
    n, _, *size = _image(site, x)
    if not 1 <= param.pyramid_height <= min(size).bit_length():
        raise site.error(f"has a pyramid_height of {param.pyramid_height} over {size}")
    levels = []
    for bins in (2**level for level in range(param.pyramid_height)):
        k = tuple(ceil(i / bins) for i in size)
        p = tuple((k * bins - i + 1) // 2 for k, i in zip(k, size, strict=True))
        pooled = _pooled(site, x, param.pool, (k, k, p))
        levels.append(pooled)
    if len(levels) == 1:
        return levels[0]
    flat = [site.reshaped(level, (n, prod(shape(level)[1:]))) for level in levels]
    return site.node("Concat", flat, (n, sum(shape(level)[1] for level in flat)), axis=1)


def local_response(site: LayerSite) -> Value:
    """x / (k + alpha / size * sum of x²)^beta over neighboring channels, or over neighboring
    pixels of a channel with k = 1."""
    x, param = site.bottom(), site.parameters("lrn_param")
    axes, size, alpha, beta = len(_image(site, x)) - 2, param.local_size, param.alpha, param.beta
    if size % 2 == 0:
        raise site.error(f"has an even local_size, {size}")
    if param.norm_region != WITHIN_CHANNEL:
        return site.node("LRN", [x], shape(x), alpha=alpha, beta=beta, bias=param.k, size=size)
    square = site.node("Mul", [x, x], shape(x))
    sizes = ((size,) * axes, (1,) * axes, (size // 2,) * axes)
    mean = _pooled(site, square, POOL_AVERAGE, sizes)
    power = site.node(
        "Pow", [site.scaled(mean, alpha, 1.0), site.constant("power", -beta)], shape(x)
    )
    return site.node("Mul", [x, power], shape(x))


def upsampling(site: LayerSite) -> Value:
    """Repeats each pixel; with a Pooling mask as second bottom, puts it back where the mask
    says."""
    x, *mask = site.bottoms(1, 2)
    n, c, *size = _image(site, x)
    if len(size) != 2 or (mask and shape(mask[0]) != shape(x)):
        raise site.error(f"enlarges {', '.join(str(list(shape(blob))) for blob in (x, *mask))}")
    h, w = size
    param = site.parameters("upsample_param")
    scales = (param.scale_h or param.scale, param.scale_w or param.scale)
    sizes = (param.upsample_h or h * scales[0], param.upsample_w or w * scales[1])
    out_dims = (n, c, *sizes)
    if not mask:
        factors = np.divide(sizes, (h, w))
        inputs = [x, None, site.constant("scales", [1.0, 1.0, *factors])]
        return site.node(
            "Resize",
            inputs,
            out_dims,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    site.check_count(out_dims)
    # ONNX counts through the whole tensor, Caffe within a channel.
    start = np.arange(n * c, dtype=np.int64).reshape(n, c, 1, 1) * prod(sizes)
    index = site.cast(mask[0], "int64")
    index = site.node("Add", [index, site.constant("start", start)], shape(x), "int64")
    stride = [max(1, size // i) for size, i in zip(sizes, (h, w), strict=True)]
    return site.node(
        "MaxUnpool",
        [x, index, site.numbers("shape", out_dims)],
        out_dims,
        kernel_shape=stride,
        strides=stride,
    )


class SizeField(NamedTuple):
    """The spellings of a size: `name` for all axes or each, `short`_h and _w; None: no
    default."""

    name: str
    short: str
    default: int | None


_KERNEL = SizeField("kernel_size", "kernel", None)
_STRIDE = SizeField("stride", "stride", 1)
_PAD = SizeField("pad", "pad", 0)
_DILATION = SizeField("dilation", "", 1)
_CONVOLUTION = (_KERNEL, _STRIDE, _PAD, _DILATION)


def _image(site: LayerSite, x: Value) -> Shape:
    """(n, c, h, w), with any number of spatial axes, at least one."""
    if len(shape(x)) < 3:
        raise site.error(f"slides over an input of shape {list(shape(x))}, which has no image")
    return shape(x)


def _sizes(site: LayerSite, param: Any, field: SizeField, axes: int) -> Shape:
    """One number per spatial axis, from `pad: 1`, `pad: 1 pad: 2` or `pad_h: 1 pad_w: 2`."""
    pair = (f"{field.short}_h", f"{field.short}_w")
    sizes = tuple(getattr(param, field.name))
    if field.short and any(map(param.HasField, pair)):
        sizes = tuple(getattr(param, key) for key in pair)
    if not sizes and field.default is not None:
        sizes = (field.default,)
    if len(sizes) not in (1, axes) or (field.default != 0 and min(sizes) < 1):
        raise site.error(f"has {field.name} {list(sizes)} for {axes} axes")
    return sizes if len(sizes) == axes else sizes * axes


def _check_groups(site: LayerSite, param: Any, channels: int) -> None:
    if param.axis not in (1, 1 - len(shape(site.bottom()))):
        raise site.error(f"has its channels on axis {param.axis}; only axis 1 is supported")
    group, outputs = param.group, param.num_output
    if not outputs or not group or channels % group or outputs % group:
        raise site.error(f"gives {outputs} channels of {channels} in {group} groups")


def _convolved(
    site: LayerSite, op_type: str, weight: Shape, out_dims: Shape, sizes: tuple[Shape, ...]
) -> Value:
    x, param = site.bottom(), site.parameters("convolution_param")
    k, s, p, d = sizes
    biases = [(param.num_output,)] if param.bias_term else []
    labels = ("weight", "bias")
    arrays = site.blobs(weight, *biases)
    return site.node(
        op_type,
        [x, *(site.constant(label, values) for label, values in zip(labels, arrays, strict=False))],
        out_dims,
        kernel_shape=k,
        strides=s,
        pads=(*p, *p),
        dilations=d,
        group=param.group,
    )


def _pooled(site: LayerSite, x: Value, method: int, sizes: tuple[Shape, ...]) -> Value:
    out_dims, reach = _reach(site, x, sizes)
    if method == POOL_AVERAGE:
        return _averaged(site, x, out_dims, (*sizes, reach))
    k, s, p = sizes
    return site.node("MaxPool", [x], out_dims, kernel_shape=k, strides=s, pads=(*p, *reach))


def _reach(site: LayerSite, x: Value, sizes: tuple[Shape, ...]) -> tuple[Shape, Shape]:
    """(output shape, cells read behind the input: e, or 0)."""
    k, s, p = sizes
    n, c, *size = shape(x)
    if any(pad >= kernel for pad, kernel in zip(p, k, strict=True)):
        raise site.error(f"pads by {list(p)}, which is not less than its kernel {list(k)}")
    along = [_pool_axis(*four) for four in zip(size, k, s, p, strict=True)]
    if any((o - 1) * s >= i + p for (o, _), s, i, p in zip(along, s, size, p, strict=True)):
        raise site.error(f"has a window outside its input of {size}")
    return (n, c, *(o for o, _ in along)), tuple(max(0, e) for _, e in along)


def _pool_axis(i: int, k: int, s: int, p: int) -> tuple[int, int]:
    """(o, e) of one axis."""
    o = -((k - i - 2 * p) // s) + 1
    if p and (o - 1) * s >= i + p:
        o -= 1
    return o, (o - 1) * s + k - i - p


def _averaged(site: LayerSite, x: Value, out_dims: Shape, sizes: tuple[Shape, ...]) -> Value:
    k, s, p, e = sizes
    if all(e <= p for e, p in zip(e, p, strict=True)):  # no window extends beyond the padding
        return site.node(
            "AveragePool",
            [x],
            out_dims,
            kernel_shape=k,
            strides=s,
            pads=(*p, *e),
            count_include_pad=int(any(p)) or None,
        )
    inner = [min(e, p) for e, p in zip(e, p, strict=True)]
    beyond = [max(0, e - p) for e, p in zip(e, p, strict=True)]
    if any(p):
        n, c, *size = shape(x)
        wide = (n, c, *(i + p + q for i, p, q in zip(size, p, inner, strict=True)))
        x = site.node("Pad", [x, site.numbers("pads", [0, 0, *p, 0, 0, *inner])], wide)
    return site.node(
        "AveragePool", [x], out_dims, kernel_shape=k, strides=s, pads=(*(0 for _ in k), *beyond)
    )


def _located(site: LayerSite, x: Value, sizes: tuple[Shape, ...]) -> tuple[Value, ...]:
    k, s, p = sizes
    out_dims, reach = _reach(site, x, sizes)
    outputs = [TensorSpec("maxpool", out_dims), TensorSpec("index", out_dims, "int64")]
    pooled, index = site.nodes(
        "MaxPool", [x], outputs, kernel_shape=k, strides=s, pads=(*p, *reach)
    )
    plane = site.numbers("plane", [prod(shape(x)[2:])])
    within = site.node("Mod", [index, plane], out_dims, "int64")
    return pooled, site.cast(within, "float32")
