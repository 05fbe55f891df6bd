"""npumake compare: a board's tensors against ours; the first divergence and its likely cause

DIR holds the tensors of one inference on a board, simulator or emulator. Formats: .npy, .npz, .txt,
and .bin with shape and type in its name, in a manifest.json or implied by its size. Any subset of
nodes works, named as here, as in the trained model, or by output number. See docs/running.md.

example:
  npumake compare digits:rdk-x5 --dump dump/
  npumake compare digits:rdk-x5 --dump dump/ --sample 3
  npumake compare digits@p999:ara240 --dump dump/ --input image=digit.npy --json

exit codes: 0 all agree, 6 a tensor diverges
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from npumake import digest
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.cli.terminal import printable
from npumake.errors import GateError, ProjectError

if TYPE_CHECKING:
    from rich.table import Table

    from npumake.bundle.program import Program
    from npumake.cli.precision_target import PrecisionTarget
    from npumake.data.samples import Samples
    from npumake.debug.dumps.compare import Dump, DumpComparison
    from npumake.debug.dumps.inputs import DumpFeeds
    from npumake.debug.dumps.matching import Names
    from npumake.debug.dumps.walk import DumpRow
    from npumake.digest import Json
    from npumake.targets.target import Target

MAX_CAUSES = 3
MAX_NAMES = 6  # of nodes or files in a sentence
IN_ORDER = ("tflite", "vela", "iree")  # backends whose outputs have the layout of the inner tensors


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="PROJECT[@VARIANT][:TARGET]")
    parser.add_argument("--dump", type=Path, required=True, metavar="DIR", help="the board's files")
    feed_options = parser.add_mutually_exclusive_group()
    feed_options.add_argument(
        "--sample",
        metavar="N|NAME",
        help="of the project, the input of the board; default: the first",
    )
    feed_options.add_argument(
        "--input", action="append", metavar="[NAME=]FILE.npy", help="the input of the board"
    )
    parser.add_argument("--json", action="store_true", help="for machines")
    wide_argument(parser)
    format_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.precision_target import bring_up, place_of
    from npumake.custom.operators import declared
    from npumake.data.samples import Samples
    from npumake.debug.dumps.compare import compare_dump, read_dump
    from npumake.debug.dumps.files import dump_files
    from npumake.project.reader import built
    from npumake.targets.target import Target

    dump_files(arguments.dump)  # report a wrong folder before a build starts
    place = place_of(arguments.model, None)
    build, comparison = place.build, place.comparison
    samples = build.plan.node(comparison.inputs["samples"])
    bring_up(build, {comparison.inputs["quantized"], samples.name}, quiet=arguments.json)
    build.memory.save()
    target = built(Target, comparison.target_document)
    names = _names(place, target)
    dump = read_dump(arguments.dump, names)
    feeding = _feeding(arguments, names.program, Samples.load(build.artifact(samples)))
    operators = declared(comparison.params["custom_operators"], build.sources(comparison))
    in_order = target.backend in IN_ORDER
    result = compare_dump(names.program, dump, feeding, operators, in_order)
    if arguments.json:
        print(digest.text(_document(result, dump), indent=1))
    else:
        _show(arguments, result, dump)
    if result.first is not None:
        message = f"the dump diverges from ours at `{result.first.node}`"
        raise GateError(message, str(arguments.dump))
    return 0


def _names(place: PrecisionTarget, target: Target) -> Names:
    """The integer program, with its tensors' names here and in the trained model."""
    from npumake.debug.dumps.matching import names_of
    from npumake.engine.lower import lowered
    from npumake.graph import Graph, origin

    build, inputs = place.build, place.comparison.inputs
    quantized = Graph.load(build.artifact(build.plan.node(inputs["quantized"])))
    model = build.plan.node(build.plan.node(inputs["samples"]).inputs["original_float"])
    trained: dict[str, list[str]] = {}
    for node in Graph.load(build.artifact(model)).nodes():
        for name in origin(node)[:1]:
            trained.setdefault(name, []).extend(str(value.name) for value in node.outputs)
    return names_of(lowered(quantized, target.rounding, target.runnable), trained)


def _feeding(arguments: argparse.Namespace, program: Program, samples: Samples) -> DumpFeeds:
    """Raises ProjectError for a file that does not fit its input."""
    from npumake.cli.run import files_of
    from npumake.debug.dumps.inputs import DumpFeeds, feeding_of, feeds_from_files

    if not arguments.input:
        return feeding_of(samples, arguments.sample)
    files = files_of(arguments.input, program.inputs)
    for name in program.inputs:
        if name not in files:
            raise ProjectError(f"input `{name}` has no file", "--input", f"--input {name}=FILE.npy")
    words = ", ".join(path.name for path in files.values())
    return DumpFeeds(words, feeds_from_files(program, files), samples, is_explicit=True)


def _show(arguments: argparse.Namespace, result: DumpComparison, dump: Dump) -> None:
    SCREEN.table(_table(arguments.model, result, dump, SCREEN.width))
    for line in _lines(result, dump):
        print(printable(line))


def _table(title: str, result: DumpComparison, dump: Dump, width: int | None) -> Table:
    from npumake.cli.columns import Column, Line, draw_table

    names = [Column(head, "name") for head in ("Node", "File", "Type")]
    figures = [Column(head, "figure") for head in ("Max diff", "Differ", "Cosine")]
    lines = []
    for row in result.rows:
        is_first = result.first is not None and row.tensor == result.first.tensor
        row_figures = (
            f"{row.difference.worst:.4g}",
            f"{row.difference.share:.2%}",
            f"{row.difference.cosine:.6f}",
        )
        style = "bold red" if is_first else "yellow" if row.status == "differs" else None
        node = "> " * is_first + row.node
        lines.append(Line((node, dump.files[row.tensor], row.op, row.status, *row_figures), style))
    return draw_table([*names, Column("Status"), *figures], lines, width, title)


def _lines(result: DumpComparison, dump: Dump) -> Iterator[str]:
    """The lines below the table."""
    yield f"fed: {result.input}"
    if dump.unmatched:
        yield f"not compared: {_name_list(dump.unmatched)}: not in the program"
    if dump.inside:
        words = "inside a fused node, which does not output them"
        yield f"not compared: {_name_list(dump.inside)}: {words}"
    first = result.first
    if first is None:
        yield f"{len(result.rows)} tensors agree"
        return
    trained_names = [name for name in first.origin if name != first.node]
    trained = (
        f" ({', '.join(trained_names[:MAX_NAMES])} in the trained model)" if trained_names else ""
    )
    apart = f"{first.difference.share:.1%} of {first.reading.codes.size} elements, by up to"
    yield f"first divergence: {first.node}{trained}: {apart} {first.difference.worst:.4g} codes"
    if first.between:
        yield f"or in a node before it that the dump lacks: {_name_list(first.between)}"
    for index, cause in enumerate(result.causes[:MAX_CAUSES]):
        words = "likely cause" if index == 0 else "or"
        yield f"{words}: {cause.sentence}; this explains {max(cause.score, 0.0):.1%} of it"
    if not result.causes:
        yield "likely cause: none of the known ones"
    if result.is_isolated:
        yield "its readers agree with ours: it was computed rightly and dumped wrongly"


def _name_list(names: tuple[str, ...]) -> str:
    hidden = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {hidden} more" if hidden > 0 else "")


def _document(result: DumpComparison, dump: Dump) -> dict[str, Json]:
    first = result.first
    return {
        "fed": result.input,
        "first": None if first is None else _row(first, dump),
        "causes": [
            {"kind": c.kind, "score": round(c.score, 4), "sentence": c.sentence, **c.figures}
            for c in result.causes
        ],
        "written_wrongly": result.is_isolated,
        "rows": [_row(row, dump) for row in result.rows],
        "unmatched": list(dump.unmatched),
        "inside": list(dump.inside),
    }


def _row(row: DumpRow, dump: Dump) -> dict[str, Json]:
    """The row as JSON; an infinite or NaN difference is null."""
    return {
        "node": row.node,
        "type": row.op,
        "tensor": row.tensor,
        "file": dump.files[row.tensor],
        "origin": list(row.origin),
        "status": row.status,
        "max_codes": float(row.difference.worst) if math.isfinite(row.difference.worst) else None,
        "share": row.difference.share,
        "cosine": row.difference.cosine if math.isfinite(row.difference.cosine) else None,
        "read_as": row.reading.form,
        "between": list(row.between),
    }
