"""The memory plan: no two tensors that live together share a byte, and little is lost."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.bundle.memory import ALIGNMENT, MemoryPlan, blocks_of, lives, planned, tensor_bytes
from npumake.bundle.program import Instruction, Program, Tensor

CODES = st.lists(st.integers(1, 40), min_size=1, max_size=3)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Steps that read one or two of what was made, some in place, some giving outputs."""
    tensors = {"x": Tensor(tuple(draw(CODES)), "int8", 1.0)}
    steps: list[Instruction] = []
    for index in range(draw(st.integers(1, 12))):
        read = draw(st.lists(st.sampled_from(sorted(tensors)), min_size=1, max_size=2))
        op = draw(st.sampled_from(["conv", "add", "lookup", "reshape"]))
        shape = tensors[read[0]].shape if op != "conv" else tuple(draw(CODES))
        tensors[f"t{index}"] = Tensor(shape, draw(st.sampled_from(["int8", "int16"])), 1.0)
        steps.append(Instruction(op, f"n{index}", tuple(read), (f"t{index}",)))
    outputs = draw(st.sets(st.sampled_from(sorted(tensors)), min_size=1))
    return Program(("x",), tuple(sorted(outputs)), tensors, tuple(steps))


def overlaps(program: Program, memory: MemoryPlan) -> list[tuple[str, str]]:
    """Pairs of tensors that live at one step and share a byte. One that is computed in the place
    of another takes over at the step that last reads it: up to there only the first is meant."""
    span, found = lives(program), []
    for one, other in combinations(span, 2):
        (a, b), (c, d) = span[one], span[other]
        together = max(a, c) <= min(b, d)
        handed_over = b == c and any({one, other} <= set(x.names) for x in blocks_of(program))
        starts = memory.offsets[one], memory.offsets[other]
        ends = [memory.offsets[n] + tensor_bytes(program.tensors[n]) for n in (one, other)]
        if together and not handed_over and max(starts) < min(ends):
            found.append((one, other))
    return found


@given(programs())
@examples(200)
def test_what_lives_together_shares_no_byte(program):
    assert overlaps(program, planned(program)) == []


@given(programs())
@examples(200)
def test_the_peak_is_between_the_largest_live_set_and_everything_in_a_row(program):
    memory = planned(program)
    assert memory.live_peak <= memory.peak <= sum(block.size for block in blocks_of(program))
    assert all(offset % ALIGNMENT == 0 for offset in memory.offsets.values())


def chain(*ops: str) -> Program:
    names = ["x", *(f"t{i}" for i in range(len(ops)))]
    steps = tuple(
        Instruction(op, f"n{i}", (names[i],), (names[i + 1],)) for i, op in enumerate(ops)
    )
    return Program(("x",), (names[-1],), {n: Tensor((4, 64), "int8", 1.0) for n in names}, steps)


def test_a_chain_of_tables_runs_in_one_place():
    assert planned(chain("lookup", "rescale", "lookup")).peak == 256


def test_a_chain_of_convolutions_needs_two_places():
    memory = planned(chain("conv", "conv", "conv"))
    assert (memory.peak, memory.live_peak) == (512, 512)


def test_a_chain_of_thousands_needs_two_places_too() -> None:
    memory = planned(chain(*["conv"] * 5000))
    assert memory.peak == memory.live_peak == 512


def test_an_operand_that_is_read_again_keeps_its_place():
    program = chain("lookup", "lookup")
    (a, b), tensors = program.instructions, program.tensors
    again = Instruction("add", "n2", ("t0", "t1"), ("y",))
    tensors = {**tensors, "y": tensors["x"]}
    memory = planned(Program(("x",), ("y",), tensors, (a, b, again)))
    assert memory.offsets["t0"] != memory.offsets["t1"]
    assert memory.offsets["x"] == memory.offsets["t0"] == memory.offsets["y"]


def test_a_program_beyond_the_search_has_every_block_in_a_row(monkeypatch):
    program = chain("conv", "conv", "conv")
    monkeypatch.setattr("npumake.bundle.memory.MAX_PAIRS", 3)
    assert planned(program).peak == 4 * 256
