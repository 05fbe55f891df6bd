"""What stays on the chip though it is larger than the chip's memory, and what does not."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.perf.layers import layers_of

MAP = Tensor((1, 8, 4, 4), "int8", 1.0)
SIZE = 128


def program(*steps: Instruction, outputs: tuple[str, ...] = ("y",), **tensors: Tensor) -> Program:
    """Maps of one size, but for those that are given."""
    names = {name for step in steps for name in (*step.inputs, *step.outputs)}
    return Program(("x",), outputs, {name: MAP for name in sorted(names)} | tensors, steps)


def step(op: str, inputs: str, outputs: str) -> Instruction:
    weight = {"weight": np.zeros((8, 8, 1, 1), np.int8)} if op == "conv" else {}
    return Instruction(op, outputs, tuple(inputs), tuple(outputs), weight, {"group": 1})


def moved(program: Program) -> int:
    """Through DDR between the layers, where the chip keeps nothing: less the border and weights."""
    constants = sum(c.nbytes for each in program.instructions for c in each.constants.values())
    return sum(layer.moved for layer in layers_of(program, 0)) - constants - 2 * SIZE


CONV = step("conv", "x", "a")
PASSED_ON = {
    "a table": program(CONV, step("lookup", "a", "y")),
    "a table and its product": program(CONV, step("lookup", "a", "b"), step("mul", "ab", "y")),
    "what is joined": program(CONV, step("concat", "a", "y")),
    "another shape": program(step("reshape", "x", "a"), step("conv", "a", "y")),
}


@pytest.mark.parametrize("name", PASSED_ON)
def test_what_is_passed_on_stays(name):
    assert moved(PASSED_ON[name]) == 0


def test_sums_on_their_way_out_are_written_once():
    sums = replace(MAP, dtype="int32")
    found = layers_of(program(CONV, step("transpose", "a", "y"), a=sums, y=sums), 0)
    assert [layer.stored for layer in found] == [0, 4 * SIZE]


def test_what_is_transposed_on_its_way_out_is_written_once():
    found = layers_of(program(CONV, step("transpose", "a", "y")), 0)
    assert [layer.stored for layer in found] == [0, SIZE]
    inside = program(CONV, step("transpose", "a", "b"), step("conv", "b", "y"))
    assert layers_of(inside, 0)[0].stored == SIZE


def test_what_another_conv_reads_goes_out_and_back():
    assert moved(program(CONV, step("conv", "a", "y"))) == 2 * SIZE


def test_what_is_read_again_later_goes_out_and_back_once():
    steps = (CONV, step("conv", "a", "b"), step("conv", "b", "c"), step("add", "ac", "y"))
    assert layers_of(program(*steps), 0)[0].stored == SIZE
    assert layers_of(program(*steps), 0)[3].loaded == 0


def test_a_step_of_which_nothing_comes_reads_nothing():
    alone = program(CONV, step("lookup", "a", "y"))
    dead = replace(alone, instructions=(*alone.instructions, step("dequantize", "a", "z")))
    dead = replace(dead, tensors={**alone.tensors, "z": replace(MAP, dtype="float32", scale=None)})
    assert moved(dead) == moved(alone)


@pytest.mark.parametrize("on_chip", [0, 1, SIZE // 2, SIZE, 2 * SIZE])
def test_more_memory_moves_no_more(on_chip):
    chain = program(CONV, step("conv", "a", "b"), step("conv", "b", "y"))
    less, more = (sum(x.moved for x in layers_of(chain, size)) for size in (on_chip, on_chip + 1))
    assert more <= less <= sum(x.moved for x in layers_of(chain, None))
