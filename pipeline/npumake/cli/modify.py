"""npumake modify: remove Quantize, Transpose, Dequantize… at the border of a compiled model

example:
  npumake modify model.hybrid                            # which nodes can be deleted
  npumake modify model.hybrid -r logits_dequantized      # delete one, then list the others
  npumake modify model.hybrid -a Dequantize -a Softmax -o small.hybrid

Nodes are removed in the given order. Your application then has to compute them:
  Quantize    clamp(round(x / scale) + zero_point, -128, 127)
  Dequantize  (x - zero_point) * scale
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from npumake.cache.publish import replacing


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="HYBRID", help="a file, or PROJECT[:TARGET]")
    for flags, by, help_text in (
        (("-r",), "node", "a node to delete"),
        (("-a", "--all"), "type", "a type; all its nodes are removed"),
    ):
        parser.add_argument(
            *flags,
            dest="selections",
            action="append",
            type=partial(_selection, by),
            metavar=by.upper(),
            help=help_text,
        )
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="NAME_modified.hybrid")


def _selection(by: str, name: str) -> tuple[str, str]:
    return by, name


def run(arguments: argparse.Namespace) -> int:
    from npumake.bundle.pack import single
    from npumake.cli.selection import artifact_path
    from npumake.runtime.border import modified, removable

    model = artifact_path(arguments.model)
    bundle = single(model)
    if not arguments.selections:
        print(f"Nodes that can be deleted: {[x.step.name for x in removable(bundle.program)]}")
        return 0
    bundle, removed = modified(bundle, arguments.selections)
    for node in removed:
        print(f"Node '{node.step.name}' found, its OP type is '{node.kind}'")
        print(f"Node '{node.step.name}' is removed")
    output = arguments.output or model.with_name(f"{model.stem}_modified{model.suffix}")
    with replacing(output) as temporary:
        temporary.write_bytes(bundle.to_bytes())
    print(f"modified model saved as {output}")
    return 0
