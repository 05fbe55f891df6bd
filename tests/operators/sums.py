"""Modes of what sums, normalizes or selects along axes, of attention and of recurrent layers."""

from __future__ import annotations

from dataclasses import replace

from operators.case import EVEN, ROWS, SEQUENCES, UNEVEN, Integers, Mode, Shape, mode

IMAGE_AND_ROWS = (EVEN, UNEVEN)


def _reduction(op: str) -> dict[str, Mode]:
    before = "a = Abs(x) p = Add(a, one) " if op in ("ReduceLogSum", "ReduceProd") else ""
    read, held = ("p", {"one": 1.0}) if before else ("x", {})

    def reduced(options: str, axes: list[int] | None, *shapes: Shape) -> Mode:
        given = {} if axes is None else {"axes": axes}
        names = f"{read}, axes" if given else read
        return mode(f"{before}y = {op}<{options}>({names})", *shapes, **held, **given)

    keep = "keepdims=1"
    few = {
        "height and width": reduced(keep, [2, 3]),
        "channels": reduced(keep, [1]),
        "the last axis, not kept": reduced("keepdims=0", [-1]),
    }
    few |= {
        "negative axes, reversed": reduced(keep, [-1, -2]),
        "axes in reversed order, not kept": reduced("keepdims=0", [3, 1]),
    }
    if op not in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"):
        return few
    return {
        **few,
        "the last axis": reduced(keep, [-1]),
        "height": reduced(keep, [2]),
        "channels and width": reduced(keep, [1, 3]),
        "height and width, not kept": reduced("keepdims=0", [2, 3]),
        "all": reduced(keep, None),
        "the last axis of a sequence": reduced(keep, [-1], *SEQUENCES),
    }


def _place(op: str) -> dict[str, Mode]:
    """Values far enough apart that int8 tells them."""

    def found(options: str, *shapes: Shape) -> Mode:
        return mode(f"y = {op}<{options}>(x)", *shapes, kind="int64")

    def cast(options: str, number: int, kind: str) -> Mode:
        return mode(f"i = {op}<{options}>(x) y = Cast<to={number}>(i)", kind=kind)

    return {
        "channels": found("axis=1"),
        "channels, not kept": found("axis=1, keepdims=0"),
        "the last axis": found("axis=-1"),
        "height": found("axis=2"),
        "of a row": found("axis=1, keepdims=0", *ROWS),
        "the last of equal ones": found("axis=1, select_last_index=1"),
        "a negative axis": found("axis=-3"),
        "cast to int64": cast("axis=1", 7, "int64"),
        "cast to int32": cast("axis=1, keepdims=0", 6, "int32"),
        "cast to uint8": cast("axis=1, keepdims=0", 2, "uint8"),
        "cast to float": cast("axis=-1", 1, "float"),
        "of a function in float": mode(
            f"r = Round(x) i = {op}<axis=1>(r) y = Cast<to=7>(i)", kind="int64"
        ),
    }


def _softmax(op: str) -> dict[str, Mode]:
    return {
        "the last axis": mode(f"y = {op}<axis=-1>(x)"),
        "channels": mode(f"y = {op}<axis=1>(x)"),
        "height": mode(f"y = {op}<axis=2>(x)"),
        "of rows": mode(f"y = {op}<axis=-1>(x)", *ROWS),
        "the first axis of rows": mode(f"y = {op}<axis=0>(x)", *ROWS),
        "of a sequence": mode(f"y = {op}<axis=1>(x)", *SEQUENCES),
        "sharp": mode(f"s = Mul(x, c) y = {op}(s)", *ROWS, c=12.0),
        "opset 11": mode(f"y = {op}<axis=1>(x)", *ROWS, opset=11),
        "a negative axis": mode(f"y = {op}<axis=-3>(x)"),
    }


def _topk(k: int, axis: int) -> Mode:
    return mode(f"y, place = TopK<axis={axis}>(x, k)", k=[k])


LAST: dict[str, object] = {"g": lambda s: (s[-1],), "b": lambda s: (s[-1],)}
EACH: dict[str, object] = {"g": lambda s: (s[1],), "b": lambda s: (s[1],)}
SPELLED_NORM = (
    "m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes=[-1]>(q) "
    "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) k = Mul(n, g) y = Add(k, b)"
)
SPELLED_RMS = (
    "q = Mul(x, x) v = ReduceMean<axes=[-1]>(q) e = Add(v, eps) r = Sqrt(e) n = Div(x, r) "
    "y = Mul(n, g)"
)
BATCH = {
    "g": lambda s: [0.5 + 0.5 * i for i in range(s[1])],
    "b": lambda s: (s[1],),
    "m": lambda s: (s[1],),
    "v": lambda s: [0.4 + 0.3 * i for i in range(s[1])],
}
NORMS: dict[str, dict[str, Mode]] = {
    "LayerNormalization": {
        "the last axis": mode("y = LayerNormalization(x, g, b)", **LAST),
        "of a sequence": mode("y = LayerNormalization(x, g, b)", *SEQUENCES, **LAST),
        "of three axes": mode("y = LayerNormalization<axis=-3>(x, g)", g=lambda s: s[1:]),
        "no bias": mode("y = LayerNormalization(x, g)", *SEQUENCES, g=LAST["g"]),
        "of two axes": mode(
            "y = LayerNormalization<axis=2>(x, g)", g=lambda s: (s[2], s[3])),
        "spelled out": mode(SPELLED_NORM, *SEQUENCES, opset=17, eps=1e-5, **LAST),
    },
    "InstanceNormalization": {
        "": mode("y = InstanceNormalization(x, g, b)", **EACH),
        "of a row": mode("y = InstanceNormalization(x, g, b)", *SEQUENCES, **EACH),
    },
    "GroupNormalization": {
        "two groups": mode(
            "y = GroupNormalization<num_groups=2>(x, g, b)", EVEN, opset=21, **EACH),
        "one group": mode("y = GroupNormalization<num_groups=1>(x, g, b)", opset=21, **EACH),
        "opset 18": mode(
            "y = GroupNormalization<num_groups=2>(x, g, b)", EVEN, opset=18, g=(2,), b=(2,)),
    },
    "RMSNormalization": {
        "": mode("y = RMSNormalization(x, g)", *SEQUENCES, opset=23, g=LAST["g"]),
        "spelled out": mode(SPELLED_RMS, *SEQUENCES, opset=17, eps=1e-6, g=LAST["g"]),
    },
    "LpNormalization": {
        "p=2": mode("y = LpNormalization<axis=1>(x)"),
        "p=1": mode("y = LpNormalization<axis=-1, p=1>(x)"),
        "a negative axis": mode("y = LpNormalization<axis=-3>(x)"),
    },
    "BatchNormalization": {
        "": mode("y = BatchNormalization(x, g, b, m, v)", **BATCH),
        "behind a function": mode(
            "t = Tanh(x) y = BatchNormalization(t, g, b, m, v)", **BATCH),
    },
    "MeanVarianceNormalization": {
        "": mode("y = MeanVarianceNormalization<axes=[2,3]>(x)"),
        "negative axes, reversed": mode("y = MeanVarianceNormalization<axes=[-1,-3]>(x)"),
    },
    "LRN": {"": mode("y = LRN<size=3>(x)")},
}  # fmt: skip
HEADS = "q = Transpose<perm=[0,2,1,3]>(x) "
ATTENTION = {
    "two products and a Softmax": mode(
        "t = Transpose<perm=[0,1,3,2]>(x2) s = MatMul(x, t) c = Mul(s, k) p = Softmax(c) "
        "y = MatMul(p, x3)",
        x2=lambda s: (*s[:2], 9, s[3]), x3=lambda s: (*s[:2], 9, 3), k=0.4),
    "with a mask": mode(
        "t = Transpose<perm=[0,1,3,2]>(x2) s = MatMul(x, t) m = Add(s, mask) p = Softmax(m) "
        "y = MatMul(p, x3)",
        x2=lambda s: s, x3=lambda s: s,
        mask=lambda s: [[0.0 if j <= i else -10000.0 for j in range(s[2])] for i in range(s[2])]),
    "opset 23": mode("y = Attention(x, x2, x3)", opset=23, x2=lambda s: s, x3=lambda s: s),
}  # fmt: skip


def _gates(n: int) -> dict[str, object]:
    return {"w": lambda s: (1, 3 * n, s[2]), "r": (1, 3 * n, 3), "b": (1, 6 * n)}


def _recurrent(op: str, n: int) -> dict[str, Mode]:
    run = f"y, h = {op}<hidden_size=3"
    last = f"h0, y = {op}<hidden_size=3"
    both: dict[str, object] = {"w": lambda s: (2, 3 * n, s[2]), "r": (2, 3 * n, 3), "b": (2, 6 * n)}
    return {
        "forward": mode(f"{run}>(x, w, r, b)", *SEQUENCES, **_gates(n)),
        "reverse": mode(f'{run}, direction="reverse">(x, w, r, b)', *SEQUENCES, **_gates(n)),
        "bidirectional": mode(f'{run}, direction="bidirectional">(x, w, r, b)', *SEQUENCES, **both),
        "the last state": mode(f"{last}>(x, w, r)", *SEQUENCES, w=_gates(n)["w"], r=_gates(n)["r"]),
        "the last state in reverse": mode(
            f'{last}, direction="reverse">(x, w, r, b)', *SEQUENCES, **_gates(n)
        ),
        "a clip": mode(f"{run}, clip=0.3>(x, w, r, b)", *SEQUENCES, **_gates(n)),
        "of 48 steps": replace(mode(f"{run}>(x, w, r, b)", (48, 1, 64), **_gates(n)), alone=True),
        "lengths": mode(
            f"{run}>(x, w, r, b, n)", *SEQUENCES, **_gates(n), n=lambda s: Integers([1] * s[1])
        ),
        "an initial state": mode(
            f"{run}>(x, w, r, b, , h0)", *SEQUENCES, **_gates(n), h0=lambda s: (1, s[1], 3)
        ),
    }


LSTM = {
    "peepholes": mode(
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b, , , , p)", *SEQUENCES, **_gates(4), p=(1, 9)
    ),
    "peepholes in reverse": mode(
        'y, h, c = LSTM<hidden_size=3, direction="reverse">(x, w, r, b, , , , p)',
        *SEQUENCES,
        **_gates(4),
        p=(1, 9),
    ),
    "peepholes and a clip": mode(
        "y, h, c = LSTM<hidden_size=3, clip=0.4>(x, w, r, b, , , , p)",
        *SEQUENCES,
        **_gates(4),
        p=(1, 9),
    ),
    "input_forget": mode(
        "y, h, c = LSTM<hidden_size=3, input_forget=1>(x, w, r, b)", *SEQUENCES, **_gates(4)
    ),
    "the last cell": mode("h, l, y = LSTM<hidden_size=3>(x, w, r, b)", *SEQUENCES, **_gates(4)),
}


GRU_BEHIND = mode(
    "y, h = GRU<hidden_size=3, linear_before_reset=1>(x, w, r, b)", *SEQUENCES, **_gates(3)
)
REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
SUMS: dict[str, dict[str, Mode]] = {
    **{f"Reduce{name}": _reduction(f"Reduce{name}") for name in REDUCTIONS},
    "ArgMax": _place("ArgMax"),
    "ArgMin": _place("ArgMin"),
    "TopK": {
        "channels": _topk(2, 1),
        "the last axis": _topk(3, -1),
        "a negative axis": _topk(2, -2),
        "the least": mode("y, place = TopK<axis=1, largest=0>(x, k)", k=[2]),
        "the places": mode("v, y = TopK<axis=-1>(x, k)", kind="int64", k=[1]),
        "the places as int32": mode(
            "v, p = TopK<axis=-1>(x, k) y = Cast<to=6>(p)", kind="int32", k=[1]
        ),
    },
    "Softmax": _softmax("Softmax"),
    "LogSoftmax": _softmax("LogSoftmax"),
    "CumSum": {
        "": mode("y = CumSum(x, a)", a=2),
        "reverse": mode("y = CumSum<reverse=1>(x, a)", a=2),
        "exclusive, a negative axis": mode("y = CumSum<exclusive=1>(x, a)", a=-1),
    },
    **NORMS,
    "Attention": ATTENTION,
    "LSTM": {**_recurrent("LSTM", 4), **LSTM},
    "GRU": {**_recurrent("GRU", 3), "linear_before_reset": GRU_BEHIND},
    "RNN": _recurrent("RNN", 1),
}
