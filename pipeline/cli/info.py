"""npumake info: what a compiled model was made from and by, what it is fed and gives

example:
  npumake info out/digits.rdk-x5.hybrid
  npumake info both.hybrid -m a     # one of a packed model

Nodes that `npumake modify` deleted are listed last, and in deleted_nodes_info.txt here.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.cli import keys
from pipeline.errors import GraphError

if TYPE_CHECKING:
    from pipeline.bundle.archive import Bundle
    from pipeline.bundle.program import Tensor

LISTING = Path("deleted_nodes_info.txt")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="HYBRID")
    parser.add_argument("-m", dest="name", metavar="NAME", help="one of a packed model")
    keys.arguments(parser)


def run(given: argparse.Namespace) -> int:
    from pipeline.bundle.opening import opened
    from pipeline.cache.publish import replacing
    from pipeline.runtime.border import deleted_nodes

    found = opened(given.model, given.name, keys.keys_of(given))
    print(f"npumake info version {version('npumake')}")
    for name, bundle in found.items():
        print(*_lines(name, bundle), sep="\n")
    deleted = [node for bundle in found.values() for node in deleted_nodes(bundle)]
    if deleted:
        text = "".join(f"{json.dumps(node, sort_keys=True)}\n" for node in deleted)
        try:
            with replacing(LISTING) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except OSError as error:
            raise GraphError(f"cannot write: {error.strerror}", str(LISTING)) from error
    return 0


def _grid(tensor: Tensor) -> str:
    from pipeline.bundle.program import SUMS

    if not tensor.scale:
        return ""
    if tensor.dtype == SUMS:
        return f" sums, the scale of each channel is in {LISTING}"
    return f" scale {tensor.scale:g} zero point {tensor.zero_point}"


def _lines(name: str, bundle: Bundle) -> Iterator[str]:
    from pipeline.bundle.memory import planned
    from pipeline.runtime.border import DELETED, deleted_nodes

    program = bundle.program
    yield f"******** {name} info *********"
    yield "############# model deps info #############"
    for key, value in sorted(bundle.provenance.items()):
        if key != DELETED:
            yield f"{key:<24}: {value}"
    yield "############# model_parameters info #############"
    yield f"{'target':<24}: {bundle.target}"
    yield f"{'batch':<24}: {bundle.batch}"
    for key, value in sorted(bundle.settings.items()):
        yield f"{key:<24}: {value}"
    counted = Counter(step.op for step in program.instructions)
    instructions = ", ".join(f"{kind} {count}" for kind, count in sorted(counted.items()))
    yield f"{'instructions':<24}: {instructions}"
    weights = sum(x.nbytes for step in program.instructions for x in step.constants.values())
    yield f"{'weight bytes':<24}: {weights}"
    yield f"{'arena bytes':<24}: {planned(program).peak}"
    yield "--------- input/output types -"
    for role, names in (("input", program.inputs), ("output", program.outputs)):
        for each in names:
            tensor = program.tensors[each]
            yield f"model {role}: {each} {tensor.dtype}{list(tensor.shape)}{_grid(tensor)}"
    if deleted := deleted_nodes(bundle):
        yield "--------- deleted nodes -"
        yield from (f"deleted nodes: {node['name']}" for node in deleted)
