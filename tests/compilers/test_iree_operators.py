"""What IREE compiles gives the codes of our integer engine, whatever stands beside an operator.

CI takes the kinds that converters are known to get wrong, in two sizes; NPUMAKE_EVERY=1 takes every
operator in all sizes. The operators of one test are one file: a failure names the case.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import numpy as np
import pytest

from compilers.files import made_of
from compilers.operator_cases import IMAGES, PLACES, ROWS, Case, at_places, ints, model_of
from npumake.bundle.program import Program
from npumake.compilers.backends import built
from npumake.engine.exact import ExactSession
from npumake.graph import parse
from npumake.passes import optimized
from npumake.runtime.iree import IreeSession
from npumake.targets.reader import read_target
from workspaces import few

pytest.importorskip("iree.compiler", reason="npumake[compilers] is not installed")
pytest.importorskip("tosa_converter_for_tflite", reason="npumake[compilers] is not installed")
pytestmark = pytest.mark.slow

TARGET = read_target("iree-cpu")
FUNCTIONS = [
    *("Abs", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Neg"),
    *("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"),
]
RESIZE = (
    "s_{{n}} = Constant <value_floats: floats = [1.0, 1.0, {height}, {width}]> () "
    '{{y}} = Resize <mode = "{mode}", coordinate_transformation_mode = "{coordinates}", '
    'nearest_mode = "{rule}">({{x}}, , s_{{n}})'
)
SLICE = (
    "a_{{n}} = {begin} e_{{n}} = {end} d_{{n}} = {axes} s_{{n}} = {steps} "
    "{{y}} = Slice({{x}}, a_{{n}}, e_{{n}}, d_{{n}}, s_{{n}})"
)
END = 1 << 40
AROUND = ints(0, 0, 1, 2, 0, 0, 2, 1)


def _resizes() -> dict[str, str]:
    made = {}
    for coordinates in ("asymmetric", "half_pixel", "align_corners"):
        for height, width in (("2.0", "2.0"), ("3.0", "2.0"), ("0.5", "1.5"), ("1.0", "0.4")):
            for mode, rule in (
                ("nearest", "floor"),
                ("nearest", "round_prefer_ceil"),
                ("linear", "floor"),
            ):
                text = RESIZE.format(
                    mode=mode, coordinates=coordinates, rule=rule, height=height, width=width
                )
                made[f"Resize {mode} {coordinates} {rule} {height}x{width}"] = text
    return made


def _slice(axis: int, step: int) -> str:
    begin, end = (-1, -END) if step < 0 else (0, END)
    return SLICE.format(begin=ints(begin), end=ints(end), axes=ints(axis), steps=ints(step))


def _reduced(kind: str, axis: int, keep: int) -> str:
    return f"a_{{n}} = {ints(axis)} {{y}} = {kind} <keepdims = {keep}>({{x}}, a_{{n}})"


# Of images and rows alike; of images; all in every place.
ANYWHERE = {kind: f"{{y}} = {kind}({{x}})" for kind in FUNCTIONS} | {
    "Gelu tanh": '{y} = Gelu <approximate = "tanh">({x})',
    "Sqrt": "z_{n} = Abs({x}) {y} = Sqrt(z_{n})",
    "Add": "z_{n} = Sigmoid({x}) {y} = Add({x}, z_{n})",
    "Sub": "z_{n} = Sigmoid({x}) {y} = Sub({x}, z_{n})",
    "Mul": "z_{n} = Sigmoid({x}) {y} = Mul({x}, z_{n})",
    "Div": "z_{n} = Exp({x}) {y} = Div({x}, z_{n})",
    "Softmax": "{y} = Softmax <axis = -1>({x})",
    "Softmax 1": "{y} = Softmax <axis = 1>({x})",
    "Concat": "z_{n} = Tanh({x}) {y} = Concat <axis = 1>({x}, z_{n})",
}
OF_IMAGES = {
    **_resizes(),
    **{f"Slice {axis} by {step}": _slice(axis, step) for axis in (1, 2, 3) for step in (-1, -2, 2)},
    **{
        f"{kind} {axis} {keep}": _reduced(kind, axis, keep)
        for kind in ("ReduceMean", "ReduceMax", "ReduceSum")
        for axis in (1, 2, 3)
        for keep in (0, 1)
    },
    "MaxPool": "{y} = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>({x})",
    "AveragePool": "{y} = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]>({x})",
    "GlobalAveragePool": "{y} = GlobalAveragePool({x})",
    "GlobalMaxPool": "{y} = GlobalMaxPool({x})",
    "Pad": f"a_{{n}} = {AROUND} {{y}} = Pad({{x}}, a_{{n}})",
    "Pad edge": f'a_{{n}} = {AROUND} {{y}} = Pad <mode = "edge">({{x}}, a_{{n}})',
    "Transpose": "{y} = Transpose <perm = [0, 3, 1, 2]>({x})",
    "Flatten": "{y} = Flatten({x})",
}
# Of codes alone.
CHOSEN = {
    f"ArgMax {axis} {keep}": f"{{y}} = ArgMax <axis = {axis}, keepdims = {keep}>({{x}})"
    for axis in (1, 2, 3)
    for keep in (0, 1)
}
# What converters are known to get wrong, all in one file for CI.
KINDS = (
    *("Gelu", "Sqrt", "Slice 3 by -1", "ArgMax 3 0", "MaxPool"),
    *("Resize nearest asymmetric floor 2.0x2.0", "Resize linear half_pixel floor 3.0x2.0"),
)


def _cases() -> dict[str, Mapping[str, Case]]:
    made = {name: at_places(text, [*IMAGES, *ROWS]) for name, text in ANYWHERE.items()}
    made |= {name: at_places(text, _images(name)) for name, text in OF_IMAGES.items()}
    made |= {name: at_places(text, IMAGES, PLACES[1:3]) for name, text in CHOSEN.items()}
    return made | {"a sample": _sample(made)}


def _images(name: str) -> list[tuple[int, ...]]:
    """All but those of which a Resize leaves no pixel."""
    factors = name.rpartition(" ")[2].split("x") if name.startswith("Resize") else ("1.0", "1.0")
    return [
        image
        for image in IMAGES
        if all(int(float(n) * size) for n, size in zip(factors, image[2:], strict=True))
    ]


def _sample(cases: Mapping[str, Mapping[str, Case]]) -> dict[str, Case]:
    texts = [next(iter(cases[kind].values())).text for kind in KINDS]
    at = [at_places(text, IMAGES[1:2], PLACES[1:2]) for text in texts]
    return {f"k{number}": one["c0"] for number, one in enumerate(at)}


CASES = _cases()


@pytest.mark.parametrize("operator", few(CASES, "a sample".__eq__))
def test_the_codes_are_those_of_our_engine(operator, tmp_path):
    chosen = CASES[operator]
    graph = optimized(parse(model_of(chosen).SerializeToString(), "m.onnx").with_shapes())
    rng = np.random.default_rng(0)
    fed = {f"x_{name}": rng.normal(size=case.shape).astype("f") for name, case in chosen.items()}
    found = made_of(graph, fed)
    (tmp_path / "m.vmfb").write_bytes(built(found.program, found.graph, TARGET, {}))
    native, ours = IreeSession(tmp_path / "m.vmfb"), ExactSession(found.program)
    for scale in (1.0, 3.0):  # the second beyond what was calibrated
        x = {name: np.float32(scale) * values for name, values in fed.items()}
        wanted = dict(zip(ours.output_names, ours.run(None, x), strict=True))
        laid = {port.name: _laid(x[port.name], port.shape) for port in native.inputs}
        given = dict(zip(native.output_names, native.run(None, laid), strict=True))
        steps = _steps(found.program)
        wrong = {k: _wrong(chosen[k[2:]], v, given[k], steps.get(k, 0)) for k, v in wanted.items()}
        assert {name: what for name, what in wrong.items() if what} == {}


def _steps(program: Program) -> dict[str, float]:
    """The scale of each output of codes."""
    shown = {s.outputs[0]: s.inputs[0] for s in program.instructions if s.op == "dequantize"}
    return {name: float(program.tensors[codes].scale or 0) for name, codes in shown.items()}


def _laid(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return values if values.shape == tuple(shape) else values.transpose(0, 2, 3, 1).copy()


def _wrong(case: Case, wanted: np.ndarray, given: np.ndarray, step: float) -> str:
    """What is wrong, empty where nothing is: the axes may lie otherwise; a code beside is where a
    float is quantized inside, and lies between two."""
    turns = [wanted.transpose(axes) for axes in permutations(range(wanted.ndim))]
    fits = [turn for turn in turns if turn.shape == given.shape]
    if not fits:
        return f"{case}: {given.shape} where {wanted.shape} is right"
    worst = min(float(np.abs(turn.astype(float) - given).max(initial=0)) for turn in fits)
    limit = 1.01 * step or 1e-4 * float(np.abs(wanted).max(initial=0))
    return f"{case}: {worst} beside" if worst > limit else ""
