"""A case: one operator in one mode, as a small model in ONNX text, and what stands around it.

    x  what the operator reads, behind a Conv, a MatMul or a LeakyRelu: on a grid of its own
    y  what it makes; x2, x3 ... are further inputs of the model

A case has no expected result: onnxruntime computes that of the text as it stands.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

Shape = tuple[int, ...]
# A tuple is the shape of random floats, a list or a number are the values; a function takes the
# shape of x and returns one of these.
Constant = object

EVEN: Shape = (1, 4, 8, 6)
UNEVEN: Shape = (1, 3, 7, 5)
ROWS: tuple[Shape, ...] = ((2, 8), (3, 5))
SEQUENCES: tuple[Shape, ...] = ((1, 4, 8), (2, 3, 5))
FRONT, BEHIND = "x", "z"  # the nodes in front and behind, which are called after what they make


@dataclass(frozen=True)
class Mode:
    """How an operator is used. `body` makes y of x; `shapes` are the shapes of x."""

    body: str
    shapes: tuple[Shape, ...] = (EVEN, UNEVEN)
    constants: Mapping[str, Constant] = field(default_factory=dict)
    fed: Mapping[str, object] = field(default_factory=dict)  # further inputs: shape, or of x
    opset: int = 20
    kind: str = "float"  # the type of y
    alone: bool = False  # not in another company too


@dataclass(frozen=True, eq=False)
class Case:
    """`around` says what stands in front and behind; `text` is the model, or `model` its bytes,
    with what is `fed` and `meant`."""

    operator: str
    mode: str
    around: str
    text: str
    model: bytes = b""
    fed: Mapping[str, np.ndarray] = field(default_factory=dict)
    meant: np.ndarray | None = None

    @property
    def name(self) -> str:
        return f"{self.operator}: {self.mode}: {self.around}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode() or self.model).hexdigest()[:12]

    def proto(self) -> onnx.ModelProto:
        if self.model:
            return onnx.load_from_string(self.model)
        made = onnx.parser.parse_model(self.text)
        for value in made.graph.input:  # `float[]` is a number; the text has no shape for it
            value.type.tensor_type.shape.SetInParent()
        return made


class Integers(list[int]):
    """Values as int32: lengths of sequences."""


def mode(body: str, *shapes: Shape, opset: int = 20, kind: str = "float", **given: object) -> Mode:
    """x2, x3 ... among `given` are inputs, the rest are constants."""
    fed = {name: value for name, value in given.items() if name[0] == "x"}
    constants = {name: value for name, value in given.items() if name[0] != "x"}
    return Mode(body, shapes or (EVEN, UNEVEN), constants, fed, opset, kind)


def cases(operator: str, name: str, how: Mode) -> Iterator[Case]:
    """Behind a layer; of the last shape instead between two LeakyRelu, unless it is `alone`."""
    *others, last = how.shapes
    for shape in how.shapes if how.alone or not others else others:
        front = "Conv" if len(shape) == 4 else "MatMul" if len(shape) > 1 else "LeakyRelu"
        yield Case(operator, name, f"{front}, {_size(shape)}", _text(how, shape, front, ""))
    if how.alone:
        return
    behind = "LeakyRelu" if how.kind == "float" else ""
    around = f"LeakyRelu, {_size(last)}{', LeakyRelu' if behind else ''}"
    yield Case(operator, name, around, _text(how, last, "LeakyRelu", behind))


def _size(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _text(how: Mode, shape: Shape, front: str, behind: str) -> str:
    rng = np.random.default_rng(7)
    held = {name: _of(value, shape) for name, value in how.constants.items()}
    fed = {"fed": shape, **{name: _of(value, shape) for name, value in how.fed.items()}}
    before = "x = LeakyRelu<alpha=0.5>(fed)"
    if front == "Conv":
        held["front"] = (shape[1], shape[1], 1, 1)
        before = "x = Conv(fed, front)"
    elif front == "MatMul":
        held["front"] = (shape[-1], shape[-1])
        before = "x = MatMul(fed, front)"
    after = " z = LeakyRelu<alpha=0.5>(y)" if behind else ""
    constants = ", ".join(_constant(name, value, rng) for name, value in held.items())
    inputs = ", ".join(f"float[{_dims(dims)}] {name}" for name, dims in fed.items())
    return (
        f'<ir_version: 10, opset_import: ["" : {how.opset}]>\n'
        f"agraph ({inputs}) => ({how.kind}[] {'z' if behind else 'y'}) <{constants}> "
        f"{{ {before} {how.body}{after} }}"
    )


def _of(value: object, shape: Shape) -> object:
    return value(shape) if callable(value) else value


def _constant(name: str, value: object, rng: np.random.Generator) -> str:
    """A random weight is drawn so that what it sums stays about as large as what it reads."""
    if isinstance(value, tuple):
        spread = 1 / math.sqrt(max(math.prod(value[1:]), 1)) if len(value) > 1 else 0.5
        values = rng.normal(0, spread, value).round(4)
    else:
        values = np.array(value, np.int32 if isinstance(value, Integers) else None)
    type = {"f": "float", "i": "int64", "b": "bool"}[values.dtype.kind]
    type = "int32" if values.dtype == np.int32 else type
    numbers = ",".join(
        map(str, (values.astype(int) if type == "bool" else values).ravel().tolist())
    )
    dims = f"[{_dims(values.shape)}]" if values.shape else ""
    return f"{type}{dims} {name} = {{{numbers}}}"


def _dims(shape: object) -> str:
    assert isinstance(shape, tuple)
    return ",".join(map(str, shape))


Table = Mapping[str, Mapping[str, Mode]]
Sized = Callable[[Shape], object]
