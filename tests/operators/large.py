"""Modes at the sizes of real networks: maps of 64 channels of 64 x 64, and 196 tokens of 192.

LiteRT, OpenVINO and IREE choose other kernels there, add floats in another order, and a rounding
beside a tie is met. A mode is taken as it stands if its shapes are the usual ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from operators.case import EVEN, ROWS, SEQUENCES, UNEVEN, Case, Mode, Shape

LARGE = ", large"
SIZES: Mapping[tuple[Shape, ...], Shape] = {
    (EVEN, UNEVEN): (1, 64, 64, 64),
    SEQUENCES: (1, 196, 192),
    ROWS: (196, 192),
}
# Of every mode of these, the large ones would say no more than the small ones for minutes each.
SMALL_ALONE = frozenset({"GRU", "LSTM", "RNN", "Upsample"})
# Their constants are written for small shapes.
FITTED = frozenset(
    {
        ("ConvTranspose", "output_shape"),
        ("GatherND", ""),
    }
)


def is_large(case: Case) -> bool:
    return case.mode.endswith(LARGE)


def small_mode(mode: str) -> str:
    """The mode that a large one enlarges."""
    name = mode.removesuffix(LARGE)
    return "" if name == "plain" else name


def enlarged(operator: str, modes: Mapping[str, Mode]) -> dict[str, Mode]:
    """The modes, and each at its large size."""
    if operator in SMALL_ALONE:
        return dict(modes)
    larger = {
        f"{name or 'plain'}{LARGE}": replace(how, shapes=(SIZES[how.shapes],), alone=True)
        for name, how in modes.items()
        if how.shapes in SIZES and (operator, name) not in FITTED and _is_worth(operator, name)
    }
    return {**modes, **larger}


def _is_worth(operator: str, name: str) -> bool:
    """A nearest Resize moves codes, at every size alike."""
    return operator != "Resize" or not name.startswith("nearest")


def small(cases: Mapping[str, Case]) -> Collection[str]:
    return {name for name, case in cases.items() if not is_large(case)}
