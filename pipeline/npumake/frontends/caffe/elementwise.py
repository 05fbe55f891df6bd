"""Elementwise layers and normalizations.

Power      (shift + scale x)^power
Exp        base^(shift + scale x)
Log        log_base(shift + scale x)
BatchNorm  (x - m/f) / sqrt(v/f + eps), f its third blob
MVN        (x - mean) / (sqrt(var) + eps)
Normalize  scale x / sqrt(sum x² + eps)
"""

from __future__ import annotations

from functools import reduce
from math import e, log
from typing import Any

import numpy as np

from npumake.frontends.caffe.messages import ENUMS
from npumake.frontends.caffe.site import LayerSite, Shape
from npumake.graph import Value, shape

ELTWISE_PRODUCT, ELTWISE_MAX = (ENUMS["EltwiseOp"].split().index(name) for name in ("PROD", "MAX"))
_REDUCTIONS = ("ReduceSum", "ReduceL1", "ReduceSumSquare", "ReduceMean")  # in the order of ENUMS
_UNARY = {"AbsVal": "Abs", "BNLL": "Softplus", "Sigmoid": "Sigmoid", "TanH": "Tanh"}


def unary(site: LayerSite) -> Value:
    x = site.bottom()
    return site.node(_UNARY[site.layer.type], [x], shape(x))


def identity(site: LayerSite) -> tuple[Value, ...]:
    """The input, once per top: Split, and Dropout in the test phase."""
    x = site.bottom()
    return tuple(site.node("Identity", [x], shape(x)) for _ in site.layer.tops)


def silence(site: LayerSite) -> tuple[Value, ...]:
    return ()


def relu(site: LayerSite) -> Value:
    x, slope = site.bottom(), site.parameters("relu_param").negative_slope
    if slope == 0.0:
        return site.node("Relu", [x], shape(x))
    return site.node("LeakyRelu", [x], shape(x), alpha=slope)


def relu6(site: LayerSite) -> Value:
    x = site.bottom()
    return site.node("Clip", [x, site.constant("low", 0.0), site.constant("high", 6.0)], shape(x))


def random_relu(site: LayerSite) -> Value:
    """The slope is random in training; the test phase uses its mean."""
    x, param = site.bottom(), site.parameters("rrelu_param")
    return site.node("LeakyRelu", [x], shape(x), alpha=(param.lower + param.upper) / 2)


def concatenated_relu(site: LayerSite) -> Value:
    x = site.bottom()
    axis = site.axis(1, len(shape(x)))
    out_dims = tuple(2 * size if a == axis else size for a, size in enumerate(shape(x)))
    negative = site.node("Neg", [x], shape(x))
    halves = [site.node("Relu", [half], shape(x)) for half in (x, negative)]
    return site.node("Concat", halves, out_dims, axis=axis)


def parametric_relu(site: LayerSite) -> Value:
    x = site.bottom()
    dims = shape(x)
    if len(dims) < 2:
        raise site.error(f"has an input of shape {list(dims)}, which has no channels")
    shared = site.parameters("prelu_param").channel_shared
    (slope,) = site.blobs(() if shared else (dims[1],))
    spread = slope.reshape(-1, *(1 for _ in dims[2:]))
    return site.node("PRelu", [x, site.constant("slope", spread)], dims)


def elu(site: LayerSite) -> Value:
    x = site.bottom()
    return site.node("Elu", [x], shape(x), alpha=site.parameters("elu_param").alpha)


def power(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("power_param")
    y = site.scaled(x, param.scale, param.shift)
    if param.power != 1.0:
        return site.node("Pow", [y, site.constant("power", param.power)], shape(x))
    return y if y is not x else site.node("Identity", [x], shape(x))


def exponential(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("exp_param")
    gain = log(_base(site, param))
    return site.node("Exp", [site.scaled(x, gain * param.scale, gain * param.shift)], shape(x))


def logarithm(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("log_param")
    natural = site.node("Log", [site.scaled(x, param.scale, param.shift)], shape(x))
    return site.scaled(natural, 1 / log(_base(site, param)))


def threshold(site: LayerSite) -> Value:
    x, limit = site.bottom(), site.parameters("threshold_param").threshold
    above = site.node("Greater", [x, site.constant("threshold", limit)], shape(x), "bool")
    return site.cast(above, "float32")


def eltwise(site: LayerSite) -> Value:
    xs, param = site.bottoms(2, 1 << 16), site.parameters("eltwise_param")
    dims = shape(xs[0])
    if any(shape(x) != dims for x in xs):
        raise site.error(f"joins shapes that differ: {', '.join(str(list(shape(x))) for x in xs)}")
    if param.operation == ELTWISE_MAX:
        return site.node("Max", xs, dims)
    if param.operation == ELTWISE_PRODUCT:
        return reduce(lambda a, b: site.node("Mul", [a, b], dims), xs)
    coefficients = tuple(param.coeff) or (1.0,) * len(xs)
    if len(coefficients) != len(xs):
        raise site.error(f"has {len(coefficients)} coefficients for {len(xs)} blobs")
    if coefficients == (1.0, -1.0):
        return site.node("Sub", xs, dims)
    scaled = [site.scaled(x, gain) for x, gain in zip(xs, coefficients, strict=True)]
    return reduce(lambda a, b: site.node("Add", [a, b], dims), scaled)


def batch_norm(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("batch_norm_param")
    if not param.use_global_stats:
        hint = "remove `use_global_stats: false`: the test phase uses the trained statistics"
        raise site.error("normalizes by the statistics of its batch", hint)
    dims = shape(x)
    if len(dims) < 2:
        raise site.error(f"has an input of shape {list(dims)}, which has no channels")
    c = dims[1]
    mean, variance, factor = site.blobs((c,), (c,), (1,))
    gain = np.float32(0.0 if factor[0] == 0.0 else 1.0 / factor[0])
    blobs = {
        "gamma": np.ones(c, np.float32),
        "beta": np.zeros(c, np.float32),
        "mean": mean * gain,
        "variance": variance * gain,
    }
    constants = [site.constant(label, values) for label, values in blobs.items()]
    return site.node("BatchNormalization", [x, *constants], dims, epsilon=param.eps)


def scale(site: LayerSite) -> Value:
    """x times a trained or computed factor, plus an optional trained bias."""
    param = site.parameters("scale_param")
    x, *factor = site.bottoms(1, 2)
    if factor:
        covered = shape(factor[0])
        trained = site.blobs(covered) if param.bias_term else []
        y = site.node("Mul", [x, _along(site, factor[0], param.axis)], shape(x))
    else:
        covered = _covered(site, param)
        gain, *trained = site.blobs(*[covered] * (2 if param.bias_term else 1))
        gain = _spread(site, gain, param.axis)
        y = site.node("Mul", [x, site.constant("scale", gain)], shape(x))
    for values in trained:
        spread = _spread(site, values, param.axis)
        y = site.node("Add", [y, site.constant("bias", spread)], shape(x))
    return y


def bias(site: LayerSite) -> Value:
    param = site.parameters("bias_param")
    x, *added = site.bottoms(1, 2)
    if added:
        return site.node("Add", [x, _along(site, added[0], param.axis)], shape(x))
    (values,) = site.blobs(_covered(site, param))
    return site.node("Add", [x, site.constant("bias", _spread(site, values, param.axis))], shape(x))


def softmax(site: LayerSite) -> Value:
    x = site.bottom()
    axis = site.axis(site.parameters("softmax_param").axis, len(shape(x)))
    return site.node("Softmax", [x], shape(x), axis=axis)


def reduction(site: LayerSite) -> Value:
    """Reduces `axis` and all axes behind it, and drops them."""
    x, param = site.bottom(), site.parameters("reduction_param")
    rank = len(shape(x))
    axis = site.axis(param.axis, rank)
    axes, left, op_type = range(axis, rank), shape(x)[:axis], _REDUCTIONS[param.operation]
    if op_type == "ReduceSum":  # only ReduceSum has its axes as an input at this opset
        inputs = [x, site.numbers("axes", tuple(axes))]
        return site.scaled(site.node(op_type, inputs, left, keepdims=0), param.coeff)
    y = site.node(op_type, [x], left, axes=tuple(axes), keepdims=0)
    return site.scaled(y, param.coeff)


def mean_variance(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("mvn_param")
    mean = _mean(site, x, param.across_channels)
    y = site.node("Sub", [x, mean], shape(x))
    if not param.normalize_variance:
        return y
    variance = _mean(site, site.node("Mul", [y, y], shape(x)), param.across_channels)
    deviation = site.node("Sqrt", [variance], shape(variance))
    return site.node("Div", [y, site.scaled(deviation, 1.0, param.eps)], shape(x))


def normalize(site: LayerSite) -> Value:
    x, param = site.bottom(), site.parameters("norm_param")
    n, c, *size = _image(site, x)
    norm_dims = [n, 1, *(1 if param.across_spatial else i for i in size)]
    axes = tuple(range(1, len(norm_dims))) if param.across_spatial else (1,)
    square = site.node("ReduceSumSquare", [x], tuple(norm_dims), axes=axes, keepdims=1)
    norm = site.node("Sqrt", [site.scaled(square, 1.0, param.eps)], tuple(norm_dims))
    unit = site.node("Div", [x, norm], shape(x))
    (gain,) = site.blobs((1,) if param.channel_shared else (c,))
    spread = gain.reshape(1, -1, *(1 for _ in size))
    return site.node("Mul", [unit, site.constant("scale", spread)], shape(x))


def _image(site: LayerSite, x: Value) -> Shape:
    if len(shape(x)) < 3:
        raise site.error(f"has an input of shape {list(shape(x))}, which has no image")
    return shape(x)


def _mean(site: LayerSite, x: Value, across_channels: bool) -> Value:
    n, c, *size = _image(site, x)
    axes = tuple(range(1 if across_channels else 2, 2 + len(size)))
    dims = (n, 1 if across_channels else c, *(1 for _ in size))
    return site.node("ReduceMean", [x], dims, axes=axes, keepdims=1)


def _base(site: LayerSite, param: Any) -> float:
    """The base of an exponential or logarithm; -1 means e."""
    if param.base == -1.0:
        return e
    if param.base <= 0.0 or param.base == 1.0:
        raise site.error(f"has base {param.base}")
    return float(param.base)


def _covered(site: LayerSite, param: Any) -> Shape:
    """The dimensions of a trained scale or bias: `num_axes` from `axis` on, -1 for all."""
    dims = shape(site.bottom())
    axis = site.axis(param.axis, len(dims))
    end = len(dims) if param.num_axes == -1 else axis + param.num_axes
    if not axis <= end <= len(dims):
        raise site.error(f"covers {param.num_axes} axes from {axis} on of {len(dims)}")
    return dims[axis:end]


def _spread_shape(site: LayerSite, covered: Shape, axis: int) -> Shape:
    """`covered`, aligned at `axis`, with ones behind so that it broadcasts."""
    dims = shape(site.bottoms(1, 2)[0])
    if not covered:
        return ()
    start = site.axis(axis, len(dims))
    if dims[start : start + len(covered)] != covered:
        raise site.error(f"applies {list(covered)} to {list(dims)} from axis {start} on")
    return covered + (1,) * (len(dims) - start - len(covered))


def _spread(site: LayerSite, values: np.ndarray, axis: int) -> np.ndarray:
    return values.reshape(_spread_shape(site, values.shape, axis))


def _along(site: LayerSite, factor: Value, axis: int) -> Value:
    return site.reshaped(factor, _spread_shape(site, shape(factor), axis))
