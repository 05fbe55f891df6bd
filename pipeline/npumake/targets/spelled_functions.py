"""Functions that a model may spell out in several operators."""

from __future__ import annotations

# Lists name the operators of a file. The optimized graph has one node where the file has several.
SPELLED_OUT = {
    "Gelu": ("Add", "Erf", "Mul"),
    "HardSigmoid": ("Add", "Clip", "Mul"),
    "HardSwish": ("Add", "Clip", "Mul"),
    "LayerNormalization": ("Add", "Div", "Mul", "ReduceMean", "Sqrt", "Sub"),
    "Mish": ("Mul", "Softplus", "Tanh"),
    "Swish": ("Mul", "Sigmoid"),
}


def with_spelled_out(*operators: str) -> tuple[str, ...]:
    """The operators, and each function that a model may also spell out in them."""
    known_operators = set(operators)
    composed = (name for name, parts in SPELLED_OUT.items() if known_operators.issuperset(parts))
    return tuple(dict.fromkeys((*operators, *composed)))
