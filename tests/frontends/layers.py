"""What each Caffe layer computes, as NumPy says it: CASES by layer type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A layer's parameters, the shapes it is fed, the shapes of its blobs, and the formula over
    all of them in this order. Whole numbers in `fed` and `blobs` are given as arrays."""

    type: str
    text: str
    fed: Sequence[Any]
    blobs: Sequence[Any]
    formula: Callable[..., Any]
    tops: int = 1


def convolved(x, w, b, s=(1, 1), p=(0, 0), d=(1, 1), g=1):
    x = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    n, _, h, wide = x.shape
    o, ci, kh, kw = w.shape
    oh, ow = (h - d[0] * (kh - 1) - 1) // s[0] + 1, (wide - d[1] * (kw - 1) - 1) // s[1] + 1
    y = np.zeros((n, o, oh, ow))
    for m in range(o):
        first = m // (o // g) * ci
        for i in range(oh):
            for j in range(ow):
                rows = i * s[0] + d[0] * np.arange(kh)
                columns = j * s[1] + d[1] * np.arange(kw)
                patch = x[:, first : first + ci][:, :, rows][:, :, :, columns]
                y[:, m, i, j] = (patch * w[m]).sum((1, 2, 3)) + b[m]
    return y


def deconvolved(x, w, b, s, p, g=1):
    n, c, h, wide = x.shape
    _, per, kh, kw = w.shape
    full = np.zeros((n, per * g, s * (h - 1) + kh, s * (wide - 1) + kw))
    for a in range(c):
        first = a // (c // g) * per
        for i in range(h):
            for j in range(wide):
                patch = x[:, a, i, j][:, None, None, None] * w[a]
                full[:, first : first + per, i * s : i * s + kh, j * s : j * s + kw] += patch
    return full[:, :, p : full.shape[2] - p, p : full.shape[3] - p] + b[:, None, None]


def pooled(x, k, s, p, method):
    """As Caffe's loop has it: (values, places of the maxima)."""
    n, c, h, w = x.shape
    oh, ow = (ceil((i + 2 * p - k) / s) + 1 for i in (h, w))
    if p:
        oh, ow = (o - 1 if (o - 1) * s >= i + p else o for o, i in ((oh, h), (ow, w)))
    y, place = np.zeros((n, c, oh, ow)), np.zeros((n, c, oh, ow))
    for i in range(oh):
        for j in range(ow):
            top, left = i * s - p, j * s - p
            bottom, right = min(top + k, h + p), min(left + k, w + p)
            size = (bottom - top) * (right - left)
            top, left, bottom, right = max(top, 0), max(left, 0), min(bottom, h), min(right, w)
            part = x[:, :, top:bottom, left:right].reshape(n, c, -1)
            at = part.argmax(-1)
            y[:, :, i, j] = part.max(-1) if method == "max" else part.sum(-1) / size
            wide = right - left
            place[:, :, i, j] = (top + at // wide) * w + left + at % wide
    return y, place


def pyramid(x):
    n, _, h, w = x.shape
    parts = []
    for bins in (1, 2, 4):
        kh, kw = ceil(h / bins), ceil(w / bins)
        assert kh == kw
        p = (kh * bins - h + 1) // 2
        parts.append(pooled(x, kh, kh, p, "max")[0].reshape(n, -1))
    return np.concatenate(parts, 1)


def lrn(x, size, alpha, beta, k):
    half = size // 2
    wide = np.pad(x**2, ((0, 0), (half, half), (0, 0), (0, 0)))
    total = sum(wide[:, i : i + x.shape[1]] for i in range(size))
    return x / (k + alpha / size * total) ** beta


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, marks, wx, b, wh):
    t, n = x.shape[:2]
    h = c = np.zeros((n, wh.shape[1]))
    made = []
    for step in range(t):
        mark = marks[step][:, None]
        gates = x[step].reshape(n, -1) @ wx.T + b + (mark * h) @ wh.T
        i, f, o, g = np.split(gates, 4, axis=1)
        c = mark * sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.stack(made)


def unpooled(x, mask):
    n, c, h, w = x.shape
    y = np.zeros((n, c, 4 * h * w))
    for a in range(n):
        for b in range(c):
            y[a, b, mask[a, b].astype(int).ravel()] = x[a, b].ravel()
    return y.reshape(n, c, 2 * h, 2 * w)


def roi_pooled(x, rois, scale, size):
    y = np.zeros((len(rois), x.shape[1], size, size))
    for r, (image, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (floor(v * scale + 0.5) for v in corners)
        bh, bw = max(y2 - y1 + 1, 1) / size, max(x2 - x1 + 1, 1) / size
        for i in range(size):
            for j in range(size):
                rows = slice(floor(i * bh) + y1, ceil((i + 1) * bh) + y1)
                columns = slice(floor(j * bw) + x1, ceil((j + 1) * bw) + x1)
                y[r, :, i, j] = x[int(image)][:, rows, columns].max((1, 2))
    return y


def ps_roi_pooled(x, rois, scale, d, p):
    _, _, h, w = x.shape
    y = np.zeros((len(rois), d, p, p))
    for r, (_, *corners) in enumerate(rois):
        x1, y1 = (floor(v + 0.5) * scale for v in corners[:2])
        x2, y2 = ((floor(v + 0.5) + 1) * scale for v in corners[2:])
        bh, bw = max(y2 - y1, 0.1) / p, max(x2 - x1, 0.1) / p
        for i in range(p):
            for j in range(p):
                top, bottom = np.clip([floor(i * bh + y1), ceil((i + 1) * bh + y1)], 0, h)
                left, right = np.clip([floor(j * bw + x1), ceil((j + 1) * bw + x1)], 0, w)
                for m in range(d):
                    part = x[0, (m * p + i) * p + j, top:bottom, left:right]
                    y[r, m, i, j] = part.mean() if part.size else 0.0
    return y


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def c4(v):
    return v.reshape(-1, 1, 1)


def mvn(x, axes, eps=1e-9):
    y = x - x.mean(axes, keepdims=True)
    return y / (np.sqrt((y**2).mean(axes, keepdims=True)) + eps)


def blocks(x):
    return np.concatenate([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)], 1)


def largest(x, k):
    return np.argsort(-x.reshape(len(x), -1), 1)[:, None, :k]


X = (2, 4, 6, 5)
ROIS = np.array([[0, 0, 0, 7, 9], [0, 2, 3, 11, 8], [0, 4, 4, 4, 4]], np.float32)
MARKS = np.array([[0, 0], [1, 1], [0, 1], [1, 1]], np.float32)
MASK = np.array([[[[0, 3], [9, 14]], [[5, 2], [12, 11]]]], np.float32)

CASES = [
    Case("AbsVal", "", [X], [], np.abs),
    Case("ArgMax", "argmax_param { axis: 1 }", [X], [], lambda x: x.argmax(1)[:, None]),
    Case(
        "ArgMax",
        "argmax_param { axis: -1 out_max_val: true top_k: 2 }",
        [(3, 4)],
        [],
        lambda x: -np.sort(-x, 1)[:, :2],
    ),
    Case("ArgMax", "argmax_param { top_k: 3 }", [X], [], lambda x: largest(x, 3)[..., None]),
    Case(
        "ArgMax",
        "argmax_param { out_max_val: true }",
        [(3, 7)],
        [],
        lambda x: np.stack([x.argmax(1), x.max(1)], 1)[..., None],
    ),
    Case("BNLL", "", [X], [], lambda x: np.log1p(np.exp(x))),
    Case(
        "BatchNorm",
        "batch_norm_param { eps: 0.001 }",
        [X],
        [(4,), np.array([0.5, 1, 2, 3]), np.array([4.0])],
        lambda x, m, v, f: (x - c4(m / f)) / np.sqrt(c4(v / f) + 0.001),
    ),
    Case("Bias", "", [X], [(4,)], lambda x, b: x + c4(b)),
    Case("Bias", "bias_param { axis: 0 }", [X, (2, 4)], [], lambda x, b: x + b[..., None, None]),
    Case("CReLU", "", [X], [], lambda x: np.concatenate([x.clip(0), (-x).clip(0)], 1)),
    Case("Concat", "", [X, (2, 1, 6, 5)], [], lambda x, y: np.concatenate([x, y], 1)),
    Case(
        "Concat", "concat_param { concat_dim: 0 }", [X, X], [], lambda x, y: np.concatenate([x, y])
    ),
    Case(
        "Convolution",
        "convolution_param { num_output: 6 kernel_size: 3 pad: 1 stride: 2 group: 2 }",
        [X],
        [(6, 2, 3, 3), (6,)],
        lambda x, w, b: convolved(x, w, b, (2, 2), (1, 1), g=2),
    ),
    Case(
        "Convolution",
        """convolution_param { num_output: 3 kernel_h: 3 kernel_w: 2 pad_w: 2 stride_h: 1
        stride_w: 2 dilation: 2 bias_term: false }""",
        [X],
        [(3, 4, 3, 2)],
        lambda x, w: convolved(x, w, np.zeros(3), (1, 2), (0, 2), (2, 2)),
    ),
    Case(
        "Crop",
        "crop_param { offset: 1 offset: 2 }",
        [X, (2, 4, 3, 2)],
        [],
        lambda x, y: x[:, :, 1:4, 2:4],
    ),
    Case(
        "Deconvolution",
        "convolution_param { num_output: 6 kernel_size: 4 pad: 1 stride: 2 group: 2 }",
        [X],
        [(4, 3, 4, 4), (6,)],
        lambda x, w, b: deconvolved(x, w, b, 2, 1, 2),
    ),
    Case("Dropout", "", [X], [], lambda x: x),
    Case("ELU", "elu_param { alpha: 0.5 }", [X], [], lambda x: np.where(x > 0, x, np.expm1(x) / 2)),
    Case("Eltwise", "", [X, X, X], [], lambda x, y, z: x + y + z),
    Case("Eltwise", "eltwise_param { coeff: 1 coeff: -1 }", [X, X], [], lambda x, y: x - y),
    Case("Eltwise", "eltwise_param { coeff: 2 coeff: -3 }", [X, X], [], lambda x, y: 2 * x - 3 * y),
    Case("Eltwise", "eltwise_param { operation: PROD }", [X, X], [], lambda x, y: x * y),
    Case("Eltwise", "eltwise_param { operation: MAX }", [X, X, X], [], lambda *x: np.max(x, 0)),
    Case("Exp", "", [X], [], np.exp),
    Case(
        "Exp",
        "exp_param { base: 2 scale: 0.5 shift: 1 }",
        [X],
        [],
        lambda x: 2 ** (1 + 0.5 * x),
    ),
    Case("Flatten", "", [X], [], lambda x: x.reshape(2, -1)),
    Case(
        "Flatten", "flatten_param { axis: 1 end_axis: 2 }", [X], [], lambda x: x.reshape(2, 24, 5)
    ),
    Case(
        "InnerProduct",
        "inner_product_param { num_output: 7 }",
        [X],
        [(7, 120), (7,)],
        lambda x, w, b: x.reshape(2, -1) @ w.T + b,
    ),
    Case(
        "InnerProduct",
        "inner_product_param { num_output: 7 axis: -1 transpose: true bias_term: false }",
        [X],
        [(5, 7)],
        lambda x, w: x @ w,
    ),
    Case(
        "LRN",
        "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 k: 2 }",
        [X],
        [],
        lambda x: lrn(x, 3, 0.5, 0.75, 2),
    ),
    Case(
        "LRN",
        "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }",
        [X],
        [],
        lambda x: x / (1 + 0.5 * pooled(x**2, 3, 1, 1, "ave")[0]) ** 0.75,
    ),
    Case(
        "LSTM",
        "recurrent_param { num_output: 3 }",
        [(4, 2, 5)],
        [(12, 5), (12,), (12, 3)],
        lambda x, *w: lstm(x, np.ones((4, 2)), *w),
    ),
    Case(
        "LSTM",
        "recurrent_param { num_output: 3 }",
        [(4, 2, 5), MARKS],
        [(12, 5), (12,), (12, 3)],
        lstm,
    ),
    Case(
        "LeakyRelu",
        "relu_param { negative_slope: 0.1 }",
        [X],
        [],
        lambda x: np.where(x > 0, x, 0.1 * x),
    ),
    Case(
        "Log",
        "log_param { base: 10 scale: 0.5 shift: 9 }",
        [X],
        [],
        lambda x: np.log10(9 + 0.5 * x),
    ),
    Case("MVN", "", [X], [], lambda x: mvn(x, (2, 3))),
    Case("MVN", "mvn_param { across_channels: true }", [X], [], lambda x: mvn(x, (1, 2, 3))),
    Case(
        "MVN",
        "mvn_param { normalize_variance: false }",
        [X],
        [],
        lambda x: x - x.mean((2, 3), keepdims=True),
    ),
    Case("MatMul", "", [(2, 3, 4), (2, 4, 5)], [], lambda a, b: a @ b),
    Case(
        "MatMul",
        "matmul_param { transpose_b: true }",
        [(3, 4), (5, 4)],
        [],
        lambda a, b: a @ b.T,
    ),
    Case("MaxUnpool", "", [(1, 2, 2, 2), MASK], [], unpooled),
    Case(
        "Normalize",
        "norm_param { across_spatial: false channel_shared: false }",
        [X],
        [(4,)],
        lambda x, s: c4(s) * x / np.sqrt((x**2).sum(1, keepdims=True) + 1e-10),
    ),
    Case(
        "Normalize",
        "",
        [X],
        [(1,)],
        lambda x, s: s * x / np.sqrt((x**2).sum((1, 2, 3), keepdims=True) + 1e-10),
    ),
    Case("PReLU", "", [X], [(4,)], lambda x, a: np.where(x > 0, x, c4(a) * x)),
    Case(
        "PReLU",
        "prelu_param { channel_shared: true }",
        [(2, 3)],
        [()],
        lambda x, a: np.where(x > 0, x, a * x),
    ),
    Case(
        "PSROIPooling",
        "psroi_pooling_param { spatial_scale: 0.5 output_dim: 2 group_size: 3 }",
        [(1, 18, 6, 7), ROIS],
        [],
        lambda x, r: ps_roi_pooled(x, r, 0.5, 2, 3),
    ),
    Case("PassThrough", "", [(1, 3, 4, 6)], [], blocks),
    Case(
        "Permute",
        "permute_param { order: 0 order: 2 order: 3 }",
        [X],
        [],
        lambda x: x.transpose(0, 2, 3, 1),
    ),
    Case(
        "Pooling",
        "pooling_param { kernel_size: 3 stride: 2 }",
        [X],
        [],
        lambda x: pooled(x, 3, 2, 0, "max")[0],
    ),
    Case(
        "Pooling",
        "pooling_param { kernel_size: 2 stride: 2 }",
        [(1, 2, 5, 5)],
        [],
        lambda x: pooled(x, 2, 2, 0, "max"),
        tops=2,
    ),
    Case(
        "Pooling",
        "pooling_param { global_pooling: true }",
        [X],
        [],
        lambda x: x.max((2, 3), keepdims=True),
    ),
    Case(
        "Pooling",
        "pooling_param { global_pooling: true pool: AVE }",
        [X],
        [],
        lambda x: x.mean((2, 3), keepdims=True),
    ),
    Case(
        "Power", "power_param { power: 2 scale: 0.5 shift: 1 }", [X], [], lambda x: (1 + x / 2) ** 2
    ),
    Case("Power", "", [X], [], lambda x: x),
    Case(
        "RReLU",
        "rrelu_param { lower: 0.1 upper: 0.3 }",
        [X],
        [],
        lambda x: np.where(x > 0, x, 0.2 * x),
    ),
    Case(
        "ROIPooling",
        "roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: 0.5 }",
        [(1, 3, 6, 7), ROIS],
        [],
        lambda x, r: roi_pooled(x, r, 0.5, 2),
    ),
    Case("ReLU", "", [X], [], lambda x: x.clip(0)),
    Case(
        "ReLU", "relu_param { negative_slope: 0.2 }", [X], [], lambda x: np.where(x > 0, x, x / 5)
    ),
    Case("ReLU6", "", [X], [], lambda x: x.clip(0, 6)),
    Case("Reduction", "", [X], [], np.sum),
    Case(
        "Reduction",
        "reduction_param { operation: MEAN axis: 2 coeff: 3 }",
        [X],
        [],
        lambda x: 3 * x.mean((2, 3)),
    ),
    Case(
        "Reduction",
        "reduction_param { operation: ASUM axis: 1 }",
        [X],
        [],
        lambda x: np.abs(x).sum((1, 2, 3)),
    ),
    Case(
        "Reduction",
        "reduction_param { operation: SUMSQ axis: 3 }",
        [X],
        [],
        lambda x: (x**2).sum(3),
    ),
    Case(
        "Reshape",
        "reshape_param { shape { dim: 0 dim: -1 dim: 5 } }",
        [X],
        [],
        lambda x: x.reshape(2, 24, 5),
    ),
    Case(
        "Reshape",
        "reshape_param { shape { dim: 2 dim: 2 } axis: 1 num_axes: 1 }",
        [X],
        [],
        lambda x: x.reshape(2, 2, 2, 6, 5),
    ),
    Case("SPP", "spp_param { pyramid_height: 3 }", [(2, 3, 7, 7)], [], pyramid),
    Case(
        "Scale",
        "scale_param { bias_term: true }",
        [X],
        [(4,), (4,)],
        lambda x, a, b: x * c4(a) + c4(b),
    ),
    Case("Scale", "scale_param { axis: 2 num_axes: -1 }", [X], [(6, 5)], lambda x, a: x * a),
    Case("Scale", "scale_param { axis: 0 }", [X, (2, 4)], [], lambda x, a: x * a[..., None, None]),
    Case("Sigmoid", "", [X], [], sigmoid),
    Case("Slice", "", [X], [], lambda x: (x[:, :2], x[:, 2:]), tops=2),
    Case(
        "Slice",
        "slice_param { axis: 2 slice_point: 1 slice_point: 4 }",
        [X],
        [],
        lambda x: (x[:, :, :1], x[:, :, 1:4], x[:, :, 4:]),
        tops=3,
    ),
    Case("Softmax", "", [X], [], lambda x: softmax(x, 1)),
    Case("Softmax", "softmax_param { axis: -1 }", [X], [], lambda x: softmax(x, 3)),
    Case("Split", "", [X], [], lambda x: (x, x), tops=2),
    Case("TanH", "", [X], [], np.tanh),
    Case("Threshold", "threshold_param { threshold: 0.5 }", [X], [], lambda x: x > 0.5),
    Case("Upsample", "upsample_param { scale: 2 }", [X], [], lambda x: x.repeat(2, 2).repeat(2, 3)),
    Case(
        "Upsample",
        "upsample_param { scale_h: 3 scale_w: 2 }",
        [X],
        [],
        lambda x: x.repeat(3, 2).repeat(2, 3),
    ),
]
