"""CASES: small models of every operator, in every shape it comes in. ONNX text by operator."""

from __future__ import annotations

import numpy as np


def case(body, opset=17, y="y", kind="float", **given):
    """ONNX text: x... are fed, other tuples are the shapes of float constants, lists constants."""
    rng = np.random.default_rng(7)
    fed = [f"float[{','.join(map(str, s))}] {n}" for n, s in given.items() if n[0] == "x"]
    constants = []
    for name, value in given.items():
        if name[0] == "x":
            continue
        values = rng.normal(size=value).round(3) if isinstance(value, tuple) else np.array(value)
        element = "float" if values.dtype == float else "int64"
        numbers = ",".join(map(str, values.ravel()))
        dims = f"[{','.join(map(str, values.shape))}]" if values.shape else ""
        constants.append(f"{element}{dims} {name} = {{{numbers}}}")
    outputs = ", ".join(f"{kind}[] {name}" for name in y.split())
    return (
        f'<ir_version: 9, opset_import: ["" : {opset}]>\n'
        f"agraph ({', '.join(fed)}) => ({outputs}) <{', '.join(constants)}> {{ {body} }}"
    )


X = (1, 4, 7, 6)
DECONV = (4, 3, 3, 3)
IMAGE = (1, 2, 5, 4)
TABLES = "Abs Elu Erf Exp HardSigmoid HardSwish LeakyRelu Neg Sigmoid Softplus Softsign Tanh"
BINARY = {
    "two activations": "y = {}(x, x2)",
    "itself": "y = {}(x, x)",
    "Relu": "c = {}(x, x2)  y = Relu(c)",
    "Clip": "c = {}(x, x2)  y = Clip(c, low, high)",
}


def binary(op):
    return {
        **{n: case(b.format(op), x=X, x2=X, low=-0.5, high=0.75) for n, b in BINARY.items()},
        "left is broadcast": case(f"y = {op}(x, x2)", x=(4, 1, 6), x2=X),
        "both are broadcast": case(f"y = {op}(x, x2)", x=(1, 4, 1, 6), x2=(7, 1)),
        "a constant": case(f"y = {op}(x, c)", x=X, c=X),
        "a constant per channel": case(f"y = {op}(x, c)", x=X, c=(4, 1, 1)),
        "a constant first": case(f"y = {op}(c, x)", x=X, c=X),
        "a scalar": case(f"y = {op}(x, c)", x=X, c=0.7),
        "zero": case(f"y = {op}(x, c)", x=X, c=0.0),
    }


def positive(body, **given):
    """d is 1 or more: what lies near zero has no code to divide by."""
    return case(f"a = Abs(x2)  d = Add(a, one)  {body}", x=X, x2=X, one=1.0, **given)


def resized(options, to=None, factors=None, x=IMAGE):
    if to:
        return case(f"n = Neg(x)  y = Resize<{options}>(n, , , to)", x=x, to=to)
    return case(f"n = Neg(x)  y = Resize<{options}>(n, , factors)", x=x, factors=factors)


def resizes():
    made = {}
    for mode in ("nearest", "linear"):
        for how in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
            options = f'mode="{mode}", coordinate_transformation_mode="{how}"'
            made |= {
                f"{mode} {how} up": resized(options, factors=[1.0, 1.0, 2.0, 3.0]),
                f"{mode} {how} down": resized(options, factors=[1.0, 1.0, 0.6, 0.5]),
                f"{mode} {how} to sizes": resized(options, to=[1, 2, 7, 3]),
                f"{mode} {how} NHWC": resized(options, to=[1, 9, 4, 3], x=(1, 5, 6, 3)),
            }
    options = 'mode="{}", coordinate_transformation_mode="half_pixel_symmetric"'
    made |= {
        "nearest symmetric": resized(options.format("nearest"), factors=[1.0, 1.0, 2.3, 0.7]),
        "linear symmetric, whole": resized(options.format("linear"), factors=[1.0, 1.0, 2.0, 1.5]),
    }
    for rule in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        options = f'mode="nearest", nearest_mode="{rule}"'
        made[rule] = resized(options, factors=[1.0, 1.0, 2.0, 0.75])
    made["axes"] = case(
        "n = Neg(x)  y = Resize<axes=[-1,2]>(n, , factors)", opset=18, x=IMAGE, factors=[2.0, 0.6]
    )
    made["one axis"] = resized('mode="linear"', factors=[1.0, 1.0, 1.0, 2.5])
    made["the same size at another scale"] = resized(
        'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"',
        factors=[1.0, 1.0, 1.15, 2.0],
    )
    return made


def selected(op):
    """Largest or smallest of several, of unlike scales."""
    return {
        "two activations": case(f"a = Exp(x)  y = {op}(a, x2)", x=X, x2=X),
        "three, broadcast": case(f"a = Exp(x)  y = {op}(a, x2, x3)", x=X, x2=(7, 1), x3=(4, 1, 1)),
        "itself": case(f"n = Neg(x)  y = {op}(n, n)", x=X),
        "one alone": case(f"n = Neg(x)  y = {op}(n)", x=X),
        "a constant per channel": case(f"n = Neg(x)  y = {op}(n, c)", x=X, c=(4, 1, 1)),
        "a constant first": case(f"n = Neg(x)  y = {op}(c, n)", x=X, c=X),
        "a scalar": case(f"n = Neg(x)  y = {op}(n, c)", x=X, c=0.3),
        "a constant out of reach": case(
            f"n = Neg(x)  y = {op}(n, c)", x=(2, 3), c=[9.5, -9.5, 0.0]
        ),
        "Clip": case(f"c = {op}(x, x2)  y = Clip(c, low, high)", x=X, x2=X, low=-0.5, high=0.75),
    }


def reduced(op):
    return {
        "two axes": case(f"n = Neg(x)  y = {op}<axes=[2,3]>(n)", x=X),
        "axes as an input": case(f"n = Neg(x)  y = {op}(n, axes)", opset=18, x=X, axes=[-2]),
        "all": case(f"n = Neg(x)  y = {op}<keepdims=0>(n)", x=X),
        "of rank 1": case(f"n = Neg(x)  y = {op}<axes=[-1], keepdims=0>(n)", x=(5,)),
        "of rank 5": case(f"n = Neg(x)  y = {op}<axes=[1,-1]>(n)", x=(2, 3, 1, 2, 3)),
    }


def place(op):
    return {
        "channels": case(f"n = Neg(x)  y = {op}<axis=1>(n)", kind="int64", x=(1, 3, 2, 2)),
        "not kept, the last": case(
            f"n = Neg(x)  y = {op}<axis=-1, keepdims=0, select_last_index=1>(n)",
            kind="int64",
            x=(2, 3),
        ),
    }


def blocks(op, of, size=2, options=""):
    return case(f"n = Neg(x)  y = {op}<blocksize={size}{options}>(n)", x=of)


CRD = ', mode="CRD"'
EVERY_RANK = [(5,), (3, 4), (2, 1, 3), (1, 2, 3, 4), (2, 1, 3, 2, 2), (1, 2, 1, 2, 3, 2)]


CASES = {
    "Conv": {
        "plain": case("y = Conv(x, w)", x=X, w=(5, 4, 3, 3)),
        "bias": case("y = Conv(x, w, b)", x=X, w=(5, 4, 3, 3), b=(5,)),
        "pointwise": case("y = Conv(x, w, b)", x=X, w=(5, 4, 1, 1), b=(5,)),
        "grouped": case("y = Conv<group=2>(x, w, b)", x=X, w=(6, 2, 3, 3), b=(6,)),
        "depthwise": case(
            "y = Conv<group=4, pads=[1,1,1,1]>(x, w, b)", x=X, w=(4, 1, 3, 3), b=(4,)
        ),
        "depthwise, two each": case("y = Conv<group=4>(x, w)", x=X, w=(8, 1, 3, 2)),
        "dilated": case("y = Conv<dilations=[2,1]>(x, w, b)", x=X, w=(3, 4, 3, 3), b=(3,)),
        "strided": case("y = Conv<strides=[2,3]>(x, w)", x=X, w=(3, 4, 2, 2)),
        "asymmetric pads": case("y = Conv<pads=[0,1,2,3]>(x, w, b)", x=X, w=(3, 4, 3, 3), b=(3,)),
        "1-D": case("y = Conv<pads=[1,0], strides=[2]>(x, w, b)", x=(2, 3, 9), w=(4, 3, 3), b=(4,)),
        "3-D": case("y = Conv(x, w)", x=(1, 2, 3, 4, 4), w=(2, 2, 2, 3, 3)),
        "Relu": case("c = Conv(x, w, b)  y = Relu(c)", x=X, w=(5, 4, 3, 3), b=(5,)),
        "Clip": case(
            "c = Conv(x, w)  y = Clip(c, low, high)", x=X, w=(5, 4, 3, 3), low=-2.0, high=1.3
        ),
        "Relu6": case("c = Conv(x, w)  y = Clip(c, lo, hi)", x=X, w=(5, 4, 3, 3), lo=0.0, hi=6.0),
        "Clip from above": case(
            "c = Conv(x, w)  y = Clip(c, , high)", x=X, w=(5, 4, 1, 1), high=1.0
        ),
        "Clip to floats": case(
            "c = Conv(x, w)  y = Clip(c, lo, hi)", x=X, w=(5, 4, 1, 1), lo=0.0, hi=3.4028235e38
        ),
        "two readers": case("c = Conv(x, w)  r = Relu(c)  y = Add(c, r)", x=X, w=(5, 4, 1, 1)),
        "an output that is read": case("c = Conv(x, w)  y = Relu(c)", y="c y", x=X, w=(5, 4, 1, 1)),
    },
    "ConvTranspose": {
        "plain": case("y = ConvTranspose(x, w)", x=X, w=(4, 3, 3, 2)),
        "strided, bias": case("y = ConvTranspose<strides=[2,3]>(x, w, b)", x=X, w=DECONV, b=(3,)),
        "pads": case("y = ConvTranspose<strides=[2,2], pads=[1,0,1,1]>(x, w)", x=X, w=DECONV),
        "output padding": case(
            "y = ConvTranspose<strides=[2,2], output_padding=[1,0], pads=[1,1,1,1]>(x, w)",
            x=X,
            w=DECONV,
        ),
        "Relu": case("c = ConvTranspose<dilations=[2,1]>(x, w)  y = Relu(c)", x=X, w=DECONV),
        "grouped": case("y = ConvTranspose<group=2>(x, w, b)", x=X, w=DECONV, b=(6,)),
        "depthwise": case("y = ConvTranspose<group=4>(x, w)", x=X, w=(4, 1, 3, 3)),
    },
    "Gemm": {
        "transB=0": case("y = Gemm(x, w, b)", x=(3, 8), w=(8, 5), b=(5,)),
        "transB=1": case("y = Gemm<transB=1>(x, w, b)", x=(3, 8), w=(5, 8), b=(5,)),
        "no bias": case("y = Gemm<transB=1>(x, w)", x=(3, 8), w=(5, 8)),
        "a row of biases": case("y = Gemm(x, w, b)", x=(3, 8), w=(8, 5), b=(1, 5)),
        "one bias for all": case("y = Gemm(x, w, b)", x=(3, 8), w=(8, 5), b=(1,)),
        "a scalar bias": case("y = Gemm(x, w, b)", x=(3, 8), w=(8, 5), b=()),
        "Relu": case("c = Gemm(x, w, b)  y = Relu(c)", x=(3, 8), w=(8, 5), b=(5,)),
    },
    "MatMul": {
        "constant": case("y = MatMul(x, w)", x=(3, 8), w=(8, 5)),
        "a batch by a constant": case("y = MatMul(x, w)", x=(2, 3, 8), w=(8, 5)),
        "a vector by a constant": case("y = MatMul(x, w)", x=(8,), w=(8, 5)),
        "a constant first": case("y = MatMul(w, x)", x=(8, 5), w=(3, 8)),
        "dynamic": case("y = MatMul(x, x2)", x=(3, 8), x2=(8, 5)),
        "batched": case("y = MatMul(x, x2)", x=(2, 3, 4, 6), x2=(3, 6, 5)),
        "Clip": case("c = MatMul(x, w)  y = Clip(c, l, h)", x=(3, 8), w=(8, 5), l=-1.0, h=1.0),
    },
    **{op: binary(op) for op in ("Add", "Sub", "Mul")},
    "Relu": {"alone": case("y = Relu(x)", x=X)},
    "Clip": {
        "alone": case("y = Clip(x, low, high)", x=X, low=-0.6, high=0.9),
        "from below": case("y = Clip(x, low)", x=X, low=-0.6),
        "to nothing below zero": case("n = Abs(x)  y = Clip(n, , high)", x=X, high=-0.5),
    },
    "MaxPool": {
        "plain": case("n = Neg(x)  y = MaxPool<kernel_shape=[2,2]>(n)", x=X),
        "pads": case(
            "n = Neg(x)  y = MaxPool<kernel_shape=[3,3], pads=[1,1,0,1], strides=[2,2]>(n)", x=X
        ),
        "ceil": case(
            "n = Neg(x)  y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(n)", x=X
        ),
        "dilated": case("n = Neg(x)  y = MaxPool<kernel_shape=[3,2], dilations=[2,3]>(n)", x=X),
        "1-D": case("n = Neg(x)  y = MaxPool<kernel_shape=[3]>(n)", x=(1, 2, 9)),
        "of an input": case("y = MaxPool<kernel_shape=[2,2]>(x)", x=X),
    },
    "AveragePool": {
        "plain": case("y = AveragePool<kernel_shape=[3,2], strides=[2,2]>(x)", x=X),
        "pads": case("y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,0]>(x)", x=X),
        "pads counted": case(
            "y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,0], count_include_pad=1>(x)", x=X
        ),
        "ceil": case("y = AveragePool<kernel_shape=[3,2], strides=[3,2], ceil_mode=1>(x)", x=X),
        "ceil, pads": case(
            "y = AveragePool<kernel_shape=[3,3], strides=[3,2], ceil_mode=1, pads=[1,0,1,1]>(x)",
            x=X,
        ),
        "1-D": case("y = AveragePool<kernel_shape=[3], pads=[1,1]>(x)", x=(1, 2, 9)),
        "Relu": case("c = AveragePool<kernel_shape=[2,2]>(x)  y = Relu(c)", x=X),
    },
    "GlobalAveragePool": {
        "2-D": case("y = GlobalAveragePool(x)", x=X),
        "1-D": case("y = GlobalAveragePool(x)", x=(2, 3, 9)),
        "Relu": case("c = GlobalAveragePool(x)  y = Relu(c)", x=X),
    },
    "GlobalMaxPool": {"plain": case("n = Neg(x)  y = GlobalMaxPool(n)", x=X)},
    "Div": {
        "two activations": positive("y = Div(x, d)"),
        "Clip": positive("c = Div(x, d)  y = Clip(c, low, high)", low=-0.3, high=0.2),
        "a constant first": positive("y = Div(c, d)", c=X),
        "broadcast": positive("s = ReduceSum(d, axes)  y = Div(x, s)", axes=[1]),
    },
    "LayerNormalization": {
        "last axis": case("y = LayerNormalization(x, g, b)", x=(1, 5, 16), g=(16,), b=(16,)),
        "no bias": case("y = LayerNormalization(x, g)", x=(2, 8), g=(8,)),
        "two axes": case("y = LayerNormalization<axis=2>(x, g, b)", x=X, g=(7, 6), b=(7, 6)),
        "a large epsilon": case("y = LayerNormalization<epsilon=0.5>(x, g)", x=X, g=(6,)),
        "Relu": case("c = LayerNormalization(x, g, b)  y = Relu(c)", x=X, g=(6,), b=(6,)),
    },
    "ArgMax": place("ArgMax"),
    "ArgMin": place("ArgMin"),
    "ReduceMax": reduced("ReduceMax"),
    "ReduceMin": reduced("ReduceMin"),
    "Max": selected("Max"),
    "Min": selected("Min"),
    "DepthToSpace": {
        "columns last": blocks("DepthToSpace", (2, 8, 3, 5)),
        "columns first": blocks("DepthToSpace", (2, 8, 3, 5), options=CRD),
        "blocks of 3": blocks("DepthToSpace", (1, 9, 2, 3), 3),
        "blocks of 3, columns first": blocks("DepthToSpace", (1, 18, 1, 2), 3, CRD),
    },
    "SpaceToDepth": {
        "blocks of 2": blocks("SpaceToDepth", (2, 3, 4, 6)),
        "blocks of 3": blocks("SpaceToDepth", (1, 2, 3, 9), 3),
    },
    "Tile": {
        "several axes": case("n = Neg(x)  y = Tile(n, r)", x=X, r=[1, 2, 1, 3]),
        "rank 1": case("n = Neg(x)  y = Tile(n, r)", x=(5,), r=[3]),
        "once": case("n = Neg(x)  y = Tile(n, r)", x=(2, 3), r=[1, 1]),
    },
    "Expand": {
        "an axis": case("n = Neg(x)  y = Expand(n, to)", x=(2, 1, 3), to=[2, 4, 3]),
        "new axes": case("n = Neg(x)  y = Expand(n, to)", x=(3, 1), to=[2, 4, 1, 5]),
        "axes that it keeps": case("n = Neg(x)  y = Expand(n, to)", x=(2, 3, 4), to=[1, 1]),
    },
    "GatherElements": {
        "last": case(
            "n = Neg(x)  y = GatherElements<axis=-1>(n, i)",
            x=(2, 3),
            i=[[0, -1, 1, 2], [2, 2, 0, -3]],
        ),
        "of a corner": case(
            "n = Neg(x)  y = GatherElements<axis=1>(n, i)", x=(2, 3, 4), i=[[[2, -1]]]
        ),
        "first": case("n = Neg(x)  y = GatherElements(n, i)", x=(3, 2), i=[[2, -3]]),
    },
    "GatherND": {
        "elements": case("n = Neg(x)  y = GatherND(n, i)", x=(2, 3), i=[[0, -1], [1, 0], [1, 2]]),
        "rows": case("n = Neg(x)  y = GatherND(n, i)", x=(2, 3, 4), i=[[[1, -1]], [[0, 0]]]),
        "in batches": case(
            "n = Neg(x)  y = GatherND<batch_dims=1>(n, i)", x=(2, 3, 4), i=[[[1]], [[-3]]]
        ),
    },
    "ReduceSum": {
        "two axes": case("y = ReduceSum(x, axes)", x=X, axes=[2, 3]),
        "not kept": case("y = ReduceSum<keepdims=0>(x, axes)", x=X, axes=[-1]),
        "Relu": case("c = ReduceSum(x)  y = Relu(c)", x=X),
    },
    "ReduceMean": {
        "two axes": case("y = ReduceMean<axes=[2,3]>(x)", x=X),
        "not kept": case("y = ReduceMean<axes=[-1,1], keepdims=0>(x)", x=X),
        "all": case("y = ReduceMean<keepdims=0>(x)", x=X),
        "axes as an input": case("y = ReduceMean(x, axes)", opset=18, x=X, axes=[-2]),
    },
    "Concat": {
        "unequal scales": case(
            "a = Exp(x)  b = Tanh(x2)  d = Concat<axis=1>(a, b)  y = Neg(d)", x=X, x2=X
        ),
        "last axis, twice the same": case("a = Exp(x)  y = Concat<axis=-1>(a, a)", x=X),
        "a constant": case(
            "a = Exp(x)  d = Concat<axis=1>(c, a, x)  y = Neg(d)", x=X, c=(1, 2, 7, 6)
        ),
        "Relu": case("n = Neg(x)  c = Concat<axis=0>(n, x)  y = Relu(c)", x=X),
    },
    "Reshape": {
        "to": case("n = Neg(x)  y = Reshape(n, to)", x=X, to=[0, -1, 3]),
        **{
            f"of rank {len(dims)}": case("n = Neg(x)  y = Reshape(n, to)", x=dims, to=[-1, 1])
            for dims in EVERY_RANK
        },
    },
    "Flatten": {
        "axis 1": case("n = Neg(x)  y = Flatten(n)", x=X),
        "axis -1": case("n = Neg(x)  y = Flatten<axis=-1>(n)", x=X),
    },
    "Transpose": {
        "to NHWC": case("n = Neg(x)  y = Transpose<perm=[0,2,3,1]>(n)", x=X),
        "reversed": case("n = Neg(x)  y = Transpose(n)", x=X),
        **{
            f"of rank {len(dims)}": case("n = Neg(x)  y = Transpose(n)", x=dims)
            for dims in EVERY_RANK
        },
    },
    "Squeeze": {
        "axes": case("n = Neg(x)  y = Squeeze(n, axes)", x=(1, 3, 1, 2), axes=[2]),
        "all": case("n = Neg(x)  y = Squeeze(n)", x=(1, 3, 1, 2)),
    },
    "Unsqueeze": {"axes": case("n = Neg(x)  y = Unsqueeze(n, axes)", x=(3, 2), axes=[0, -1])},
    "Slice": {
        "plain": case("n = Neg(x)  y = Slice(n, s, e)", x=X, s=[0, 1], e=[1, 3]),
        "from the end": case("n = Neg(x)  y = Slice(n, s, e, a)", x=X, s=[-3], e=[-1], a=[-2]),
        "beyond": case("n = Neg(x)  y = Slice(n, s, e, a)", x=X, s=[-99], e=[2**62], a=[2]),
        "steps": case("n = Neg(x)  y = Slice(n, s, e, a, t)", x=X, s=[1], e=[7], a=[2], t=[2]),
        "backwards": case(
            "n = Neg(x)  y = Slice(n, s, e, a, t)",
            x=X,
            s=[-1, 4],
            e=[-(2**62), 0],
            a=[1, 3],
            t=[-1, -2],
        ),
        "backwards from before the front": case(
            "n = Neg(x)  y = Slice(n, s, e, a, t)", x=X, s=[-99], e=[-99], a=[2], t=[-1]
        ),
        "backwards from beyond": case(
            "n = Neg(x)  y = Slice(n, s, e, a, t)", x=X, s=[99], e=[-7], a=[2], t=[-3]
        ),
    },
    "Pad": {
        "zeros": case("n = Neg(x)  y = Pad(n, p)", x=X, p=[0, 1, 0, 2, 0, 0, 3, 1]),
        "a zero": case("n = Neg(x)  y = Pad(n, p, c)", x=X, p=[0, 0, 1, 1] * 2, c=0.0),
        "a number": case("n = Neg(x)  y = Pad(n, p, c)", x=X, p=[0, 1, 1, 2] * 2, c=-1.3),
        "a number beyond": case("n = Neg(x)  y = Pad(n, p, c)", x=X, p=[0, 0, 1, 1] * 2, c=9.0),
        "wrap": case('n = Neg(x)  y = Pad<mode="wrap">(n, p)', 19, x=X, p=[0, 1, 2, 1] * 2),
        "edge": case('n = Neg(x)  y = Pad<mode="edge">(n, p)', x=X, p=[0, 0, 1, 2] * 2),
        "reflect": case('n = Neg(x)  y = Pad<mode="reflect">(n, p)', x=X, p=[0, 0, 2, 1] * 2),
    },
    "Gather": {
        "several": case("n = Neg(x)  y = Gather<axis=1>(n, i)", x=X, i=[3, 0, -1]),
        "one": case("n = Neg(x)  y = Gather<axis=-1>(n, i)", x=X, i=2),
        "a deep table": case(
            "n = Neg(x)  y = Gather(n, i)", x=(3, 2), i=[[[0], [-1]], [[2], [-3]]]
        ),
        "a table of them": case("n = Neg(x)  y = Gather<axis=2>(n, i)", x=X, i=[[0, 1], [-7, 6]]),
    },
    "PRelu": {
        "a slope per channel": case("y = PRelu(x, s)", x=X, s=(4, 1, 1)),
        "one slope": case("y = PRelu(x, s)", x=X, s=0.2),
        "a negative slope": case("y = PRelu(x, s)", x=X, s=-0.7),
    },
    "Softmax": {
        "last": case("y = Softmax(x)", x=(3, 10)),
        "channels": case("y = Softmax<axis=1>(x)", x=X),
        "first": case("y = Softmax<axis=0>(x)", x=(5, 2)),
        "sharp": case("s = Mul(x, c)  y = Softmax(s)", x=(3, 10), c=30.0),
    },
    **{op: {"default": case(f"y = {op}(x)", x=X)} for op in TABLES.split()},
    "Swish": {"default": case("y = Swish(x)", opset=24, x=X)},
    "Mish": {"": case("y = Mish(x)", opset=18, x=X)},
    "Gelu": {
        "exact": case("y = Gelu(x)", opset=20, x=X),
        "tanh": case('y = Gelu<approximate="tanh">(x)', opset=20, x=X),
    },
    "Resize": resizes(),
}
CASES["Exp"]["codes beyond every number"] = case(
    "a = Abs(x)  m = Mul(a, c)  y = Exp(m)", x=X, c=-500.0
)
CASES["Elu"]["alpha"] = case("y = Elu<alpha=0.4>(x)", x=X)
CASES["LeakyRelu"]["alpha"] = case("y = LeakyRelu<alpha=0.3>(x)", x=X)
CASES["HardSigmoid"]["alpha, beta"] = case("y = HardSigmoid<alpha=0.3, beta=0.4>(x)", x=X)
