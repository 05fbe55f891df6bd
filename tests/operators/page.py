"""docs/operators.md: operator and mode by target, as VERDICTS has it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from operators.large import LARGE, small_mode
from operators.truth import REFUSED, WRONG
from operators.verdicts import UNMEASURED, Cell, cells, load, modes

FILE = Path(__file__).parents[2] / "docs" / "operators.md"
ROUNDINGS = tuple(f"hybrid {name}" for name in ("half_even", "half_up", "half_away", "twice"))
# By the head of a column of the page: the columns of the table, those of int16 last.
HEADS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "hybrid": (ROUNDINGS[:3], ("hybrid int16",)),
    "tflite": (("tflite",), ("tflite int16",)),
    "ethos-u": (("ethos-u55-128",), ("ethos-u55-128 int16",)),
    "iree-cpu": (("iree-cpu",), ()),
    "onnx": (("onnx",), ()),
    "openvino-cpu": (("openvino-cpu",), ()),
}
# From the worst, which is what a mode is.
WORST = (
    WRONG,
    UNMEASURED,
    REFUSED,
    "float",
    "partly float",
    "int16 on CPU",
    "int8 on CPU",
    "int16",
    "int8",
)
TOP = """\
# Operators

This page lists where each operator runs. `python docs/table.py` generates it from the measurements
of [tests/operators](../tests/operators); do not edit it. Two small models measure each mode, one
of even and one of uneven sizes. In one the operator is behind a Conv or a MatMul, in the other
between two LeakyRelu. A third one has the size of a real network: 64 channels of 64x64, or 196
tokens of 192. Every model is built, run, and compared with the float model and with the integer
engine.

| cell | meaning |
|---|---|
| int8, int16 | computed in integers; int16 if the project requests it |
| int8 on CPU | in integers, but not on the NPU |
| float | computed in float32: on the CPU, or between a DEQUANTIZE and a QUANTIZE of the file |
| partly float | some of its nodes are |
| not measured | `python docs/table.py --missing` measures it |
| refused | the build ends with one error that names the node; the number is the reason below |

`hybrid` is a chip that runs every operator with an integer kernel. Its roundings are half to even,
half up and half away from zero. A chip that rounds like TensorFlow Lite has the placement of
`tflite`. The operators and limits of a real chip are in its file under `pipeline/npumake/targets/`.

`ethos-u` is ethos-u55-128: its file ran before Vela, and Vela placed it. `onnx` is int8 if
onnxruntime has an integer kernel in the file. OpenVINO decides itself what it computes in integers;
its column shows what it gets. A mode without a row of its own is in the row of its operator without
a mode, or in that of `other modes`. `large` marks modes whose large size differs; a large size
that is not measured yet is taken for the small ones.
"""


def page() -> str:
    """The whole text. Raises ValueError for a cell that is wrong: it may not be listed."""
    found, reasons = cells(), dict[str, int]()
    if wrong := sorted(cell for cell, verdict in found.items() if verdict.startswith(WRONG)):
        raise ValueError(f"{len(wrong)} cells are wrong: {wrong[:3]}")
    lines = [TOP, f"| operator | {' | '.join(HEADS)} |", f"|---|{'---|' * len(HEADS)}"]
    for operator, names in _by_operator().items():
        rows: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for mode in names:
            rows[_row(operator, mode, found, reasons)].append(mode)
        lines += [f"| {_label(operator, rows, row)} | {' | '.join(row)} |" for row in _sorted(rows)]
    lines += ["", *(f"{number}. {reason}" for reason, number in reasons.items()), ""]
    if missing := sum(verdict == UNMEASURED for verdict in found.values()):
        lines += [f"{missing} of {len(found)} cells are not measured yet.", ""]
    tools = ", ".join(f"{name} {version}" for name, version in load()[0].items())
    return "\n".join([*lines, f"Measured with {tools}.", ""])


def _by_operator() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for operator, mode in modes():
        found[operator].append(mode)
    return dict(sorted(found.items()))


def _row(
    operator: str, mode: str, found: Mapping[Cell, str], reasons: dict[str, int]
) -> tuple[str, ...]:
    return tuple(
        _cell([_worst(found, operator, mode, columns) for columns in pair], operator, reasons)
        for pair in HEADS.values()
    )


def _worst(found: Mapping[Cell, str], operator: str, mode: str, columns: Collection[str]) -> str:
    """A large size that is not measured is taken for the small ones."""
    names = [case.name for case in modes()[operator, mode]]
    cells = [(name, column) for name in names for column in columns]
    verdicts = [found[cell] for cell in cells if cell in found]
    if mode.endswith(LARGE) and UNMEASURED in verdicts:
        return _worst(found, operator, small_mode(mode), columns)
    return min(verdicts, key=lambda v: (WORST.index(v.partition(":")[0]), v), default="")


def _cell(verdicts: Sequence[str], operator: str, reasons: dict[str, int]) -> str:
    """A width that is refused or float leaves the other one as it is."""
    narrow, wide = verdicts
    words = [narrow]
    if wide.startswith("int16") and narrow != wide:
        words.append(wide)
    return ", ".join(_word(verdict, operator, reasons) for verdict in words)


def _word(verdict: str, operator: str, reasons: dict[str, int]) -> str:
    kind, _, why = verdict.partition(": ")
    if kind != REFUSED:
        return verdict
    why = re.sub(r"`[^`]*`", "the node", why).replace(f"no {operator} ", "no such operator ")
    why = why.replace("TensorFlow Lite has no the node: it has no", "TensorFlow Lite has no")
    why = why.replace("TensorFlow Lite has no the node:", "TensorFlow Lite:")
    return f"refused ({reasons.setdefault(why, len(reasons) + 1)})"


def _sorted(rows: Mapping[tuple[str, ...], list[str]]) -> list[tuple[str, ...]]:
    """The row of most modes first, then by their names."""
    return sorted(rows, key=lambda row: (-len(rows[row]), rows[row]))


def _label(operator: str, rows: Mapping[tuple[str, ...], list[str]], row: tuple[str, ...]) -> str:
    if len(rows) == 1:
        return operator
    if row == _sorted(rows)[0] and len(rows[row]) > 2:
        return f"{operator}, other modes"
    others = [mode for key, modes in rows.items() if key != row for mode in modes]
    small = [name for name in rows[row] if not name.endswith(LARGE)]
    large = [small_mode(name) for name in rows[row] if name.endswith(LARGE)]
    apart = [name for name in large if name not in small]
    parts = [_listed(small, others)] if small else []
    parts += [f"large: {_listed(apart, [*small, *others])}"] if apart else []
    return f"{operator}: {'; '.join(parts)}"


def _listed(names: Sequence[str], others: Sequence[str]) -> str:
    return "; ".join(name or "plain" for name in _shortened(names, others))


def _shortened(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """`a, b` and `a, c` as `a`, and `a, b, d` and `a, c, d` as `a, ..., d`, where no other row has
    a mode that begins so, or begins and ends so."""
    found: dict[str, None] = {}
    elsewhere = {_ends(name) for name in others}
    for name in names:
        parts = name.split(", ")
        starts = [", ".join(parts[:end]) for end in range(1, len(parts))]
        alone = (s for s in starts if not any(o == s or o.startswith(f"{s}, ") for o in others))
        short = next(alone, "")
        if not short and _ends(name) not in elsewhere:
            short = _ends(name)
        found[short or name] = None
    return list(found)


def _ends(name: str) -> str:
    first, *middle, last = [*name.split(", "), ""] if ", " not in name else name.split(", ")
    return f"{first}, ..., {last}" if middle else name
