"""Modes of what reads windows or multiplies by weights: convolutions, pools, Gemm, MatMul."""

from __future__ import annotations

from collections.abc import Callable

from operators.case import EVEN, ROWS, SEQUENCES, UNEVEN, Mode, Shape, mode


def _weight(channels: int, kernel: tuple[int, ...], group: int = 0) -> Callable[[Shape], Shape]:
    """Of a Conv; `group` 0 is depthwise, with so many channels each."""
    return lambda s: (channels, s[1], *kernel) if group else (channels * s[1], 1, *kernel)


def _deep(channels: int, *kernel: int) -> Callable[[Shape], Shape]:
    return lambda s: (s[1], channels, *kernel)


W = _weight(5, (3, 3), 1)
CONV = {
    "": mode("y = Conv(x, w, b)", w=W, b=(5,)),
    "no bias": mode("y = Conv(x, w)", w=W),
    "pads": mode("y = Conv<pads=[1,1,1,1]>(x, w)", w=W),
    "asymmetric pads": mode("y = Conv<pads=[0,1,2,3]>(x, w, b)", w=W, b=(5,)),
    "SAME_UPPER": mode('y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w)', w=W),
    "SAME_LOWER": mode('y = Conv<auto_pad="SAME_LOWER", strides=[2,2]>(x, w)', w=W),
    "strides": mode("y = Conv<strides=[2,3]>(x, w)", w=_weight(4, (2, 2), 1)),
    "dilations": mode("y = Conv<dilations=[2,1]>(x, w)", w=W),
    "groups": mode("y = Conv<group=2>(x, w, b)", (1, 4, 8, 6), (1, 6, 7, 5),
                   w=lambda s: (6, s[1] // 2, 3, 3), b=(6,)),
    "depthwise": mode("y = Conv<group=4, pads=[1,1,1,1]>(x, w)", EVEN, w=_weight(1, (3, 3))),
    "depthwise, two each": mode("y = Conv<group=3>(x, w)", UNEVEN, w=_weight(2, (3, 2))),
    "of a row": mode(
        "y = Conv<pads=[1,1], strides=[2]>(x, w)", *SEQUENCES[:1], w=_weight(3, (3,), 1)),
    "of a volume": mode("y = Conv(x, w)", (1, 2, 3, 4, 6), w=_weight(2, (2, 2, 2), 1)),
    "Relu behind": mode("c = Conv(x, w) y = Relu(c)", w=W),
    "Relu6 behind": mode("c = Conv(x, w) y = Clip(c, l, h)", w=W, l=0.0, h=6.0),
    "Clip behind": mode("c = Conv(x, w) y = Clip(c, l, h)", w=W, l=-0.5, h=0.7),
    "BatchNormalization behind": mode("c = Conv(x, w) y = BatchNormalization(c, g, b, m, v)", w=W,
                                      g=(5,), b=(5,), m=(5,), v=[0.5, 1.5, 1.0, 2.0, 0.25]),
}  # fmt: skip
UP = "strides=[2,2]"
D = _deep(3, 3, 3)
DECONV = {
    "": mode("y = ConvTranspose(x, w, b)", w=D, b=(3,)),
    "strides": mode(f"y = ConvTranspose<{UP}>(x, w)", w=_deep(3, 2, 2)),
    "uneven strides": mode("y = ConvTranspose<strides=[2,3]>(x, w)", w=D),
    "pads": mode(f"y = ConvTranspose<{UP}, pads=[1,1,1,1]>(x, w)", w=_deep(3, 4, 4)),
    "asymmetric pads": mode(f"y = ConvTranspose<{UP}, pads=[1,0,1,1]>(x, w)", w=D),
    "output_padding": mode(
        f"y = ConvTranspose<{UP}, pads=[1,1,1,1], output_padding=[1,1]>(x, w)", w=D),
    "output_padding of one axis": mode(
        f"y = ConvTranspose<{UP}, pads=[1,1,1,1], output_padding=[1,0]>(x, w, b)", w=D, b=(3,)),
    "SAME_UPPER": mode(f'y = ConvTranspose<{UP}, auto_pad="SAME_UPPER">(x, w)', w=D),
    "SAME_LOWER": mode(f'y = ConvTranspose<{UP}, auto_pad="SAME_LOWER">(x, w)', w=D),
    "VALID": mode(f'y = ConvTranspose<{UP}, auto_pad="VALID">(x, w)', w=D),
    "output_shape": mode(f"y = ConvTranspose<{UP}, output_shape=[17,12]>(x, w)", EVEN, w=D),
    "output_shape, uneven": mode(
        f"y = ConvTranspose<{UP}, output_shape=[14,11]>(x, w)", UNEVEN, w=D),
    "dilations": mode("y = ConvTranspose<dilations=[2,1]>(x, w)", w=D),
    "groups": mode("y = ConvTranspose<group=2, strides=[2,2]>(x, w, b)", EVEN, w=D, b=(6,)),
    "depthwise": mode("y = ConvTranspose<group=3, strides=[2,2]>(x, w)", UNEVEN, w=_deep(1, 3, 3)),
    "groups and pads": mode(
        f"y = ConvTranspose<group=2, {UP}, pads=[1,1,0,1], output_padding=[1,0]>(x, w)", EVEN, w=D),
    "of a row": mode("y = ConvTranspose<strides=[2]>(x, w)", (1, 4, 8), (1, 3, 5), w=_deep(2, 3)),
    "Relu behind": mode(f"c = ConvTranspose<{UP}>(x, w) y = Relu(c)", w=D),
}  # fmt: skip


def _pool(op: str, options: str, *shapes: Shape) -> Mode:
    return mode(f"y = {op}<{options}>(x)", *shapes)


K2, K3 = "kernel_shape=[2,2]", "kernel_shape=[3,3]"
BOTH = {
    "": f"{K2}, strides=[2,2]",
    "overlapping": f"{K3}, strides=[2,2]",
    "pads": f"{K3}, strides=[1,1], pads=[1,1,1,1]",
    "strides and pads": f"{K3}, strides=[2,2], pads=[1,1,1,1]",
    "asymmetric pads": f"{K3}, strides=[2,2], pads=[0,1,1,0]",
    "ceil_mode": f"{K3}, strides=[2,2], ceil_mode=1",
    "ceil_mode and pads": f"{K3}, strides=[2,2], pads=[1,1,1,1], ceil_mode=1",
    "SAME_UPPER": f'{K3}, strides=[2,2], auto_pad="SAME_UPPER"',
    "SAME_LOWER": f'{K3}, strides=[2,2], auto_pad="SAME_LOWER"',
    "dilations": f"{K2}, dilations=[2,2]",
}
AVERAGES = {
    "counted pads": f"{K3}, strides=[1,1], pads=[1,1,1,1], count_include_pad=1",
    "counted pads, strides": f"{K3}, strides=[2,2], pads=[1,1,1,1], count_include_pad=1",
    "counted pads and ceil_mode": (
        f"{K3}, strides=[2,2], pads=[1,1,1,1], count_include_pad=1, ceil_mode=1"
    ),
}
ONE_ROW = {"of a row": mode("y = {}<kernel_shape=[3], strides=[2]>(x)", (1, 4, 8), (1, 3, 5))}


def _pools(op: str, options: dict[str, str]) -> dict[str, Mode]:
    row = mode(f"y = {op}<kernel_shape=[3], strides=[2]>(x)", (1, 4, 8), (1, 3, 5))
    volume = mode(f"y = {op}<kernel_shape=[2,2,2]>(x)", (1, 2, 3, 4, 6))
    modes = {name: _pool(op, text) for name, text in options.items()}
    if op == "AveragePool":  # dilations came with opset 19
        modes["of the whole image"] = _pool(op, "kernel_shape=[8,6]", EVEN)
    return {**modes, "of a row": row, "of a volume": volume}


GEMM = {
    "transB": mode("y = Gemm<transB=1>(x, w, b)", *ROWS, w=lambda s: (7, s[1]), b=(7,)),
    "transB=0": mode("y = Gemm(x, w, b)", *ROWS, w=lambda s: (s[1], 7), b=(7,)),
    "no bias": mode("y = Gemm(x, w)", *ROWS, w=lambda s: (s[1], 7)),
    "alpha, beta": mode(
        "y = Gemm<alpha=0.5, beta=2.0>(x, w, b)", *ROWS, w=lambda s: (s[1], 7), b=(7,)
    ),
    "transA": mode("y = Gemm<transA=1>(x, w)", *ROWS, w=lambda s: (s[0], 7)),
    "a bias per row": mode(
        "y = Gemm(x, w, b)", *ROWS, w=lambda s: (s[1], 7), b=lambda s: (s[0], 1)
    ),
    "of two activations": mode("y = Gemm(x, x2)", *ROWS, x2=lambda s: (s[1], 7)),
    "Relu behind": mode("c = Gemm(x, w, b) y = Relu(c)", *ROWS, w=lambda s: (s[1], 7), b=(7,)),
}
MATMUL = {
    "by a constant": mode("y = MatMul(x, w)", *ROWS, w=lambda s: (s[1], 7)),
    "a sequence by a constant": mode("y = MatMul(x, w)", *SEQUENCES, w=lambda s: (s[2], 7)),
    "an image by a constant": mode("y = MatMul(x, w)", w=lambda s: (s[3], 7)),
    "a constant first": mode("y = MatMul(w, x)", *ROWS, w=lambda s: (7, s[0])),
    "of two activations": mode("y = MatMul(x, x2)", *ROWS, x2=lambda s: (s[1], 7)),
    "of two batches": mode("y = MatMul(x, x2)", x2=lambda s: (*s[:2], s[3], 7)),
    "broadcast batches": mode("y = MatMul(x, x2)", x2=lambda s: (1, 1, s[3], 7)),
    "by a bias behind": mode(
        "m = MatMul(x, w) y = Add(m, b)", *SEQUENCES, w=lambda s: (s[2], 7), b=(7,)
    ),
    "by a batch of constants": mode("y = MatMul(x, w)", w=lambda s: (*s[:2], s[3], 7)),
}
WINDOWS: dict[str, dict[str, Mode]] = {
    "Conv": CONV,
    "ConvTranspose": DECONV,
    "MaxPool": _pools("MaxPool", BOTH),
    "AveragePool": _pools("AveragePool", BOTH | AVERAGES),
    "LpPool": {"": _pool("LpPool", f"{K2}, strides=[2,2]")},
    "GlobalAveragePool": {
        "": mode("y = GlobalAveragePool(x)"),
        "of a row": mode("y = GlobalAveragePool(x)", *SEQUENCES),
    },
    "GlobalMaxPool": {
        "": mode("y = GlobalMaxPool(x)"),
        "of a row": mode("y = GlobalMaxPool(x)", *SEQUENCES),
    },
    "Gemm": GEMM,
    "MatMul": MATMUL,
}
