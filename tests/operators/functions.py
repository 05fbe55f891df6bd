"""Modes of what computes value by value: functions, binary operators, comparisons, clamps."""

from __future__ import annotations

from operators.case import Mode, mode

SHAPED = ((1, 4, 8, 6), (1, 3, 7, 5))
UNARY = (
    "Abs Ceil Cos Elu Erf Exp Floor HardSwish LeakyRelu Neg Relu Round Sigmoid Sign Sin Softplus "
    "Softsign Tanh"
)
NEWER = {"Mish": 18, "Gelu": 20}
POSITIVE = ("Log", "Sqrt")
ONE = {"one": 1.0}


def _unary(op: str) -> dict[str, Mode]:
    return {"": mode(f"y = {op}(x)")}


def _channel(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[1], 1, 1)


def _binary(op: str) -> dict[str, Mode]:
    return {
        "two activations": mode(f"y = {op}(x, x2)", x2=lambda s: s),
        "by a channel's constant": mode(f"y = {op}(x, c)", c=_channel),
        "constant first": mode(f"y = {op}(c, x)", c=_channel),
        "by a scalar": mode(f"y = {op}(x, c)", c=0.7),
        "by itself": mode(f"y = {op}(x, x)"),
        "by a row": mode(f"y = {op}(x, c)", c=lambda s: (s[3],)),
        "broadcast over height and width": mode(f"y = {op}(x, x2)", x2=lambda s: (1, s[1], 1, 1)),
        "broadcast over channels": mode(f"y = {op}(x, x2)", x2=lambda s: (1, 1, *s[2:])),
        "both broadcast": mode(f"y = {op}(x, x2)", (1, 4, 1, 6), (1, 3, 1, 5), x2=(7, 1)),
        "of two axes": mode(f"y = {op}(x, x2)", (2, 8), (3, 5), x2=lambda s: s),
        "Relu behind": mode(f"c = {op}(x, x2) y = Relu(c)", x2=lambda s: s),
    }


def _divided() -> dict[str, Mode]:
    positive = "a = Abs(x2) d = Add(a, one) "
    return {
        "two activations": mode(f"{positive} y = Div(x, d)", x2=lambda s: s, **ONE),
        "by a channel's constant": mode(
            "y = Div(x, c)", c=lambda s: [[[1.5 + i]] for i in range(s[1])]
        ),
        "by a scalar": mode("y = Div(x, c)", c=0.7),
        "constant first": mode("a = Abs(x) d = Add(a, one) y = Div(one, d)", **ONE),
        "broadcast over channels": mode(
            f"{positive} y = Div(x, d)", x2=lambda s: (1, 1, *s[2:]), **ONE
        ),
    }


def _extreme(op: str) -> dict[str, Mode]:
    return {
        "two activations": mode(f"y = {op}(x, x2)", x2=lambda s: s),
        "three activations": mode(f"y = {op}(x, x2, x3)", x2=lambda s: s, x3=lambda s: s),
        "by a scalar": mode(f"y = {op}(x, c)", c=0.25),
        "by a channel's constant": mode(f"y = {op}(x, c)", c=_channel),
        "broadcast over channels": mode(f"y = {op}(x, x2)", x2=lambda s: (1, 1, *s[2:])),
        "one tensor": mode(f"y = {op}(x)"),
    }


def _compared(op: str) -> dict[str, Mode]:
    where = f"b = {op}(x, x2) y = Where(b, x, x2)"
    return {
        "selecting": mode(where, x2=lambda s: s)
        if op != "Equal"
        else mode("r = Relu(x) b = Equal(r, zero) y = Where(b, one, x)", zero=0.0, one=1.0),
        "with a constant": mode(f"b = {op}(x, c) y = Cast<to=1>(b)", c=0.05),
    }


FUNCTIONS: dict[str, dict[str, Mode]] = {
    **{op: _unary(op) for op in UNARY.split()},
    **{op: {"": mode(f"y = {op}(x)", opset=opset)} for op, opset in NEWER.items()},
    **{op: {"": mode(f"a = Abs(x) p = Add(a, one) y = {op}(p)", **ONE)} for op in POSITIVE},
    "Reciprocal": {"": mode("a = Abs(x) p = Add(a, one) y = Reciprocal(p)", **ONE)},
    "Celu": {"": mode("y = Celu(x)"), "alpha": mode("y = Celu<alpha=0.4>(x)")},
    "Selu": {"": mode("y = Selu(x)"), "alpha": mode("y = Selu<alpha=0.4, gamma=1.5>(x)")},
    "HardSigmoid": {
        "": mode("y = HardSigmoid(x)"),
        "alpha, beta": mode("y = HardSigmoid<alpha=0.1666667, beta=0.5>(x)"),
    },
    "ThresholdedRelu": {"": mode("y = ThresholdedRelu<alpha=0.3>(x)")},
    "Shrink": {"": mode("y = Shrink<lambd=0.3, bias=0.1>(x)")},
    "PRelu": {
        "a slope per channel": mode("y = PRelu(x, s)", s=_channel),
        "one slope": mode("y = PRelu(x, s)", s=0.2),
        "a negative slope": mode("y = PRelu(x, s)", s=-0.7),
    },
    "Clip": {
        "both": mode("y = Clip(x, low, high)", low=-0.6, high=0.9),
        "from below": mode("y = Clip(x, low)", low=-0.6),
        "from above": mode("y = Clip(x, , high)", high=0.4),
        "Relu6": mode("y = Clip(x, low, high)", low=0.0, high=6.0),
        "at a computed bound": mode("b = ReduceMax<keepdims=0>(x2) y = Clip(x, , b)", x2=(3,)),
    },
    "Pow": {
        "square": mode("y = Pow(x, c)", c=2.0),
        "of a positive": mode("a = Abs(x) p = Add(a, one) y = Pow(p, c)", c=1.5, **ONE),
        "root": mode("a = Abs(x) p = Add(a, one) y = Pow(p, c)", c=0.5, **ONE),
    },
    **{op: _binary(op) for op in ("Add", "Sub", "Mul")},
    "Div": _divided(),
    "Sum": {
        "one": mode("y = Sum(x)"),
        "two": mode("y = Sum(x, x2)", x2=lambda s: s),
        "three": mode("y = Sum(x, x2, x3)", x2=lambda s: s, x3=lambda s: s),
    },
    "Mean": {
        "two": mode("y = Mean(x, x2)", x2=lambda s: s),
        "three": mode("y = Mean(x, x2, x3)", x2=lambda s: s, x3=lambda s: s),
    },
    **{op: _extreme(op) for op in ("Max", "Min")},
    **{
        op: _compared(op)
        for op in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")
    },
    "Where": {
        "of a constant mask": mode(
            "y = Where(m, x, x2)", x2=lambda s: s, m=lambda s: [i % 2 == 0 for i in range(s[-1])]
        ),
        "to a constant": mode(
            "y = Where(m, x, c)", c=-0.5, m=lambda s: [i % 3 == 0 for i in range(s[-1])]
        ),
    },
    "Gelu": {
        "exact": mode("y = Gelu(x)"),
        "tanh": mode('y = Gelu<approximate="tanh">(x)'),
        "spelled out by Erf": mode(
            "d = Div(x, root) e = Erf(d) p = Add(e, one) m = Mul(x, p) y = Mul(m, half)",
            root=2.0**0.5, half=0.5, **ONE,
        ),
    },
    "Swish": {
        "spelled out by Sigmoid": mode("s = Sigmoid(x) y = Mul(x, s)"),
    },
    "Cast": {"to float16 and back": mode("h = Cast<to=10>(x) y = Cast<to=1>(h)"),
             "to int32 and back": mode("h = Cast<to=6>(x) y = Cast<to=1>(h)"),
             "to int64 and back": mode("h = Cast<to=7>(x) y = Cast<to=1>(h)"),
             "to int8 and back": mode("h = Cast<to=3>(x) y = Cast<to=1>(h)"),
             "to int16 and back": mode("h = Cast<to=5>(x) y = Cast<to=1>(h)"),
             "to int32": mode("y = Cast<to=6>(x)", kind="int32"),
             "to int64": mode("y = Cast<to=7>(x)", kind="int64")},
    "Identity": {"": mode("y = Identity(x)")},
    "Dropout": {"": mode("y = Dropout(x)")},
}  # fmt: skip
