"""npumake modify: take Quantize, Transpose, Dequantize… off the border of a compiled model

example:
  npumake modify model.hybrid                            # which nodes can be deleted
  npumake modify model.hybrid -r logits_dequantized      # delete one, then list the others
  npumake modify model.hybrid -a Dequantize -a Softmax -o small.hybrid

Nodes go in the order given. What they did is then yours to do:
  Quantize    clamp(round(x / scale) + zero_point, -128, 127)
  Dequantize  (x - zero_point) * scale
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from npumake.errors import GraphError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="HYBRID")
    for flags, by, what in (
        (("-r",), "node", "a node to delete"),
        (("-a", "--all"), "type", "a type, of which all go"),
    ):
        parser.add_argument(
            *flags,
            dest="wishes",
            action="append",
            type=partial(_wish, by),
            metavar=by.upper(),
            help=what,
        )
    parser.add_argument("-o", dest="made", type=Path, metavar="FILE", help="NAME_modified.hybrid")


def _wish(by: str, name: str) -> tuple[str, str]:
    return by, name


def run(given: argparse.Namespace) -> int:
    from npumake.bundle.pack import single
    from npumake.runtime.border import modified, removable

    bundle = single(given.model)
    if not given.wishes:
        print(f"Nodes that can be deleted: {[x.step.name for x in removable(bundle.program)]}")
        return 0
    bundle, gone = modified(bundle, given.wishes)
    for one in gone:
        print(f"Node '{one.step.name}' found, its OP type is '{one.kind}'")
        print(f"Node '{one.step.name}' is removed")
    made = given.made or given.model.with_name(f"{given.model.stem}_modified{given.model.suffix}")
    try:
        bundle.save(made)
    except OSError as error:
        raise GraphError(f"cannot write: {error.strerror}", str(made)) from error
    print(f"modified model saved as {made}")
    return 0
