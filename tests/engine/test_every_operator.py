"""Every operator of RULES: exact integers, within one step of onnxruntime."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from draws import drawn_pairs, label
from engine.operators import CASES
from npumake.bundle.archive import Bundle
from npumake.bundle.program import Program
from npumake.engine.exact import ExactSession
from npumake.engine.fusion import ABSORBING
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import KERNELS, ReferenceSession
from npumake.engine.rules import RULES
from npumake.graph import parse_text, upgraded
from npumake.kernels.measure import agreement
from npumake.project.sections import LayerTypes, Quantization

FEW = 0.03  # the share of codes that may differ from onnxruntime's, by one, or else one code
TIES = 0.3  # where many results are ties: a linear Resize by 2 weighs with 1/4 and 3/4
FEW_OF_INT16 = 0.1  # a step is 30 times what float32 loses
CLOSE = 0.995  # the least cosine of eight bits with the floats
EXACT = {
    "arg_max",
    "arg_min",
    "depth_to_space",
    "dequantize",
    "gather",
    "max",
    "max_pool",
    "min",
    "pad",
    "quantize",
    "reshape",
    "resize_nearest",
    "slice",
    "space_to_depth",
    "take",
    "tile",
    "transpose",
}
SCHEMES = {
    "int8 symmetric": ("int8", True),
    "int8": ("int8", False),
    "uint8": ("uint8", False),
}
ROUNDINGS = ("half_even", "half_up", "half_away")


def between(read, made):
    """Every node reads `read` and makes `made`."""
    return lambda graph: Quantization(
        layers={str(node.name): LayerTypes(input=read, output=made) for node in graph.nodes()}
    )


WIDE = {
    "int16": lambda graph: Quantization({"*": "int16"}),
    "8 bits fed": lambda graph: Quantization({"*": "int16", "INPUTS": "int8"}),
    "int16 to 8 bits": between("int16", "int8"),
    "8 bits to int16": between("int8", "int16"),
}
IDS = [(op, name) for op, cases in CASES.items() for name in cases]
every_case = pytest.mark.parametrize(("op", "name"), IDS, ids=[f"{o}: {n}" for o, n in IDS])


def test_every_operator_with_a_rule_is_in_the_table():
    assert CASES.keys() == RULES.keys()
    assert RULES.keys() >= ABSORBING


def test_every_kernel_is_an_instruction_of_some_case(chip, samples, quantized):
    met = set()
    for text in (text for cases in CASES.values() for text in cases.values()):
        graph = parse_text(text)
        made = quantized(graph, samples(graph), chip())
        met |= {step.op for step in lowered(made, "half_even").instructions}
    alike = {name for name in KERNELS if name.endswith("_twice")}  # tests/compilers meets those
    assert met == KERNELS.keys() - alike


@pytest.mark.parametrize(("case", "scheme"), drawn_pairs(IDS, list(SCHEMES)), ids=label)
def test_on_the_same_integers_it_is_within_one_step_of_onnxruntime(
    case, scheme, chip, samples, quantized, literal
):
    op, name = case
    graph = parse_text(CASES[op][name])
    feeds = samples(graph)
    ops = held(quantized(graph, feeds, chip(*SCHEMES[scheme])), feeds, literal, FEW)
    assert ops <= KERNELS.keys()  # nothing is left to the CPU


@pytest.mark.parametrize(("case", "types"), drawn_pairs(IDS, list(WIDE)), ids=label)
def test_so_it_is_on_int16_and_between_types(case, types, chip, samples, quantized, literal):
    op, name = case
    graph = newest(op, name)
    feeds = samples(graph)
    asked = WIDE[types](graph)
    ops = held(quantized(graph, feeds, chip("uint8"), asked), feeds, literal, FEW_OF_INT16)
    assert ops <= KERNELS.keys()


@cache
def newest(op, name):
    """The case in the newest opset that we read."""
    return upgraded(parse_text(CASES[op][name])).with_shapes()


def held(made, feeds, literal, few, operators=None):
    """Every instruction of the program against onnxruntime on the same integers; which they are.

    What is left to the CPU is computed by onnxruntime on either side."""
    programs = {rounding: lowered(made, rounding, operators) for rounding in ROUNDINGS}
    steps = [step for step in programs["half_even"].instructions if step.op != "constant"]
    sessions = [
        (rounding, step, ReferenceSession(alone(programs[rounding], step.name)))
        for rounding, step in itertools.product(ROUNDINGS, steps)
    ]
    for feed in (feeds[1], {given: 2 * x for given, x in feeds[0].items()}):  # 2 x saturates
        wanted = literal(made, feed, [step.outputs[0] for step in steps])
        for rounding, step, session in sessions:
            (exact,) = session.run(None, {**feed, **wanted})
            off = np.abs(np.subtract(exact, wanted[step.outputs[0]], dtype=np.float64))
            assert exact.shape == wanted[step.outputs[0]].shape
            assert off.max() <= (step.op not in EXACT)
            share = TIES if step.op == "resize_linear" or rounding != "half_even" else few
            assert step.op == "onnx" or (off > 0).sum() <= max(1, share * off.size)
    return {step.op for step in steps}


@every_case
def test_the_bundle_gives_the_same_bits_and_they_are_close_to_the_floats(
    op, name, chip, samples, quantized
):
    graph = parse_text(CASES[op][name])
    feeds = samples(graph)
    program = lowered(quantized(graph, feeds, chip()), "half_up")
    bundle = Bundle.from_bytes(Bundle("chip", program, {}).to_bytes())
    names = [made for step in program.instructions for made in step.outputs]
    exact = ReferenceSession(program).run(names, feeds[0])
    again = ReferenceSession(bundle.program).run(names, feeds[0])
    assert all(np.array_equal(a, b) for a, b in zip(exact, again, strict=True))
    fast = ExactSession(program, at_once=1, watched=names).run(names, feeds[0])
    assert all(np.array_equal(a, b) for a, b in zip(exact, fast, strict=True))
    given = ReferenceSession(program).run(None, feeds[0])
    meant = OrtSession(graph.to_bytes()).run(None, feeds[0])
    assert min(agreement(a, b).cosine for a, b in zip(meant, given, strict=True)) > CLOSE


def alone(program, name):
    """The program of this one instruction, fed the integers it reads."""
    (step,) = (step for step in program.instructions if step.name == name)
    constants = tuple(other for other in program.instructions if other.op == "constant")
    known = {other.outputs[0] for other in constants}
    read = tuple(given for given in dict.fromkeys(step.inputs) if given not in known)
    return Program(read, step.outputs, program.tensors, (*constants, step))
