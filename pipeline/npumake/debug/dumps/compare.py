"""Compares a board's dump with ours: a row per tensor, the first divergence, likely causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from npumake.bundle.program import Program
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.dumps.causes import causes
from npumake.debug.dumps.conventions import conventions, entry
from npumake.debug.dumps.difference import MAX_CODE_DIFFERENCE, SLACK
from npumake.debug.dumps.evidence import LikelyCause
from npumake.debug.dumps.files import BARE, array, dump_files
from npumake.debug.dumps.inputs import DumpFeeds
from npumake.debug.dumps.manifest import manifest
from npumake.debug.dumps.matching import Match, Names, matched
from npumake.debug.dumps.reading import DumpReading, Readings
from npumake.debug.dumps.row_evidence import evidence_of
from npumake.debug.dumps.walk import DIFFERS, WITHIN, DumpRow, DumpWalk
from npumake.engine.exact import ExactSession
from npumake.engine.reference import ReferenceSession

MAX_MORE = 4.0  # times as many elements may differ as in another reading of the file
SURE_SCORE = 0.95  # from here on, a difference that could be rounding counts as a divergence


@dataclass(frozen=True)
class DumpComparison:
    """`rows` in program order; `first` is the first divergence, None without one, with its
    `causes`. `input` describes our input. `unmatched` are files without a tensor, `inside` files
    of tensors inside a fused node. `is_isolated`: the readers of the first tensor agree with
    ours nevertheless."""

    rows: tuple[DumpRow, ...]
    first: DumpRow | None
    causes: tuple[LikelyCause, ...]
    input: str
    unmatched: tuple[str, ...]
    inside: tuple[str, ...] = ()
    is_isolated: bool = False


@dataclass(frozen=True)
class Dump:
    """The readings of a folder by tensor, and the files without a tensor."""

    readings: Mapping[str, Sequence[DumpReading]]
    files: Mapping[str, str]
    unmatched: tuple[str, ...]
    inside: tuple[str, ...] = ()


def read_dump(folder: Path, names: Names) -> Dump:
    """Read a dump. Raises ProjectError for unreadable files and if no file matches a tensor."""
    program = names.program
    matches, others = matched(dump_files(folder), manifest(folder), names, folder)
    by_tensor: dict[str, Match] = {}
    for match in sorted(matches, key=lambda match: match.tensor not in match.label.names):
        by_tensor.setdefault(_codes_of(match, program), match)
    inside = tuple(name for name in others if names.is_inside(name))
    return Dump(
        Readings(by_tensor, program),
        {tensor: match.file.display_name for tensor, match in by_tensor.items()},
        tuple(name for name in others if name not in inside),
        inside,
    )


def compare_dump(
    program: Program,
    dump: Dump,
    feeding: DumpFeeds,
    operators: Operators = NO_OPERATORS,
    strict: bool = False,
) -> DumpComparison:
    """Compare the dump with the program's tensors for the same input: the sample that matches the
    dump's input, or else the dump's input itself. `strict`: model outputs have the memory layout
    of inner tensors. Raises GraphError."""
    steps = entry(program)
    input_tensors = {*program.inputs, *(name for step in steps for name in step.outputs)}
    tensors = {name: tensor for name, tensor in program.tensors.items() if name in input_tensors}
    begin = Program(program.inputs, program.inputs, tensors, steps)
    first = feeding.matching_sample(begin, dump.readings)
    comparison = _comparison(program, dump, first, operators, strict)
    if (
        comparison.first is None
        or comparison.first.tensor not in input_tensors
        or feeding.is_explicit
    ):
        return comparison
    if comparison.causes and comparison.causes[0].score >= SURE_SCORE:
        return comparison
    own = feeding.of_dump(begin, dump.readings)
    return comparison if own is None else _comparison(program, dump, own, operators, strict)


def _comparison(
    program: Program, dump: Dump, feeding: DumpFeeds, operators: Operators, strict: bool
) -> DumpComparison:
    inner = list(dict.fromkeys(n for step in program.instructions for n in step.outputs))
    session = ExactSession(program, operators, watched=inner)
    computed = dict(feeding.feeds) | dict(
        zip(inner, session.run(inner, feeding.feeds), strict=True)
    )
    shared = conventions(program, computed, dump.readings, strict)
    walk = DumpWalk(program, ReferenceSession(program, operators), computed, dump.readings, shared)
    rows = list(walk.rows())
    facts = (feeding.name, dump.unmatched, dump.inside)
    for index, row in enumerate(rows):
        is_doubtful = row.status == WITHIN and row.difference.worst > MAX_CODE_DIFFERENCE + SLACK
        if row.status != DIFFERS and not is_doubtful:
            continue
        row, likely = _explained(row, walk, feeding, operators)
        if is_doubtful and not (
            likely and likely[0].score >= SURE_SCORE and likely[0].kind != "rounding"
        ):
            continue
        rows[index] = replace(row, status=DIFFERS)
        alone = _is_isolated(row, rows, program)
        return DumpComparison(tuple(rows), rows[index], likely, *facts, alone)
    return DumpComparison(tuple(rows), None, (), *facts)


def _explained(
    row: DumpRow, walk: DumpWalk, feeding: DumpFeeds, operators: Operators
) -> tuple[DumpRow, tuple[LikelyCause, ...]]:
    """The row and its causes; of several readings of the tensor, the best explained one."""
    holds = walk.conventions.holds
    ways = [way for way in walk.dump[row.tensor] if holds(row.tensor, way)]
    ways = ways if holds(row.tensor, row.reading) and len(ways) > 1 else [row.reading]
    rows = [replace(row, reading=way) for way in _nearest(ways, walk.expected[row.tensor])]
    evidence = evidence_of(rows, walk, feeding, operators)
    candidates = [(match_row, causes(data)) for match_row, data in zip(rows, evidence, strict=True)]
    return max(candidates, key=lambda pair: round(pair[1][0].score, 2) if pair[1] else 0.0)


def _nearest(ways: Sequence[DumpReading], expected: np.ndarray) -> list[DumpReading]:
    """The readings, without those in which far more differs: a fault in two channels stays one."""
    shares = [float((~(np.abs(way.codes - expected) <= 0.5)).mean()) for way in ways]
    return [
        way for way, share in zip(ways, shares, strict=True) if share <= MAX_MORE * min(shares)
    ] or list(ways)


def _is_isolated(first: DumpRow, rows: Iterable[DumpRow], program: Program) -> bool:
    """Whether the dump has the tensor's readers and they agree with ours: then the board computed
    with the right values and dumped others."""
    readers = {n for s in program.instructions if first.tensor in s.inputs for n in s.outputs}
    reader_rows = [row for row in rows if row.tensor in readers]
    return bool(reader_rows) and all(row.status in ("equal", "within") for row in reader_rows)


def _codes_of(match: Match, program: Program) -> str:
    """The quantized tensor, if the file has quantized values of a float tensor."""
    tensor = program.tensors[match.tensor]
    if (
        tensor.scale is not None
        or tensor.dtype != "float32"
        or not _holds_codes(match, tensor.shape)
    ):
        return match.tensor
    for step in program.instructions:
        if step.op == "dequantize" and match.tensor in step.outputs:
            return step.inputs[0]
    return _quantized(match.tensor, program) or match.tensor


def _quantized(name: str, program: Program) -> str | None:
    """The quantized tensor of an input, looking through a Transpose."""
    for step in program.instructions:  # in order
        if name in step.inputs:
            name = step.outputs[0]
            if step.op == "quantize":
                return name
    return None


def _holds_codes(match: Match, shape: Sequence[int]) -> bool:
    """Whether the file has integers, by its type or its size."""
    dtype = (match.described.dtype if match.described else None) or match.label.dtype
    if match.file.suffix in BARE:
        return np.dtype(dtype).kind in "iu" if dtype else match.file.size < 4 * int(np.prod(shape))
    values = array(match.file)
    return values is not None and values.dtype.kind in "iu"
