"""Elementwise functions in float64, by ONNX operator; lookup tables are filled from them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from npumake.graph import Node, attribute

Function = Callable[[Node, np.ndarray], np.ndarray]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow on either side."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return np.clip(alpha * x + beta, 0.0, 1.0)


def hard_swish(x: np.ndarray) -> np.ndarray:
    return x * hard_sigmoid(x, 1.0 / 6.0, 0.5)


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(np.logaddexp(0.0, x))


def _swish(node: Node, x: np.ndarray) -> np.ndarray:
    """x * sigmoid(alpha * x); SiLU for alpha = 1."""
    return x * _sigmoid(attribute(node, "alpha", 1.0) * x)


def _hard_sigmoid(node: Node, x: np.ndarray) -> np.ndarray:
    return hard_sigmoid(x, attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5))


def _gelu(node: Node, x: np.ndarray) -> np.ndarray:
    return gelu_tanh(x) if attribute(node, "approximate", "none") == "tanh" else gelu(x)


FUNCTIONS: dict[str, Function] = {
    "Abs": lambda _, x: np.abs(x),
    "Elu": lambda n, x: np.where(
        x >= 0, x, attribute(n, "alpha", 1.0) * np.expm1(np.minimum(x, 0))
    ),
    "Erf": lambda _, x: _erf(x),
    "Exp": lambda _, x: np.exp(x),
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda _, x: hard_swish(x),
    "LeakyRelu": lambda n, x: np.where(x >= 0, x, attribute(n, "alpha", 0.01) * x),
    "Mish": lambda _, x: mish(x),
    "Neg": lambda _, x: -x,
    "Sigmoid": lambda _, x: _sigmoid(x),
    "Softplus": lambda _, x: np.logaddexp(0.0, x),
    "Softsign": lambda _, x: x / (1.0 + np.abs(x)),
    "Swish": _swish,
    "Tanh": lambda _, x: np.tanh(x),
}
