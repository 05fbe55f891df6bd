"""npumake verify: check a compiled file against its statement, or its quantized graph

example:
  npumake verify out/digits.rdk-x5.hybrid              # digest, signature and chain
  npumake verify out/digits.rdk-x5.hybrid --rebuild    # build it again, and compare
  npumake verify -q out/quantized.rdk-x5.onnx -b out/digits.rdk-x5.hybrid -i digit.png -d 3

`npumake attest` writes the statement. With -q and -b it compares all outputs and all constants.
Give each input with `-i NAME=FILE`; the default is noise. exit codes: 0 PASSED, 6 not
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cli import code_trust
from npumake.cli.keys import keys_of
from npumake.errors import GateError, ProjectError

if TYPE_CHECKING:
    from npumake.debug.verify import Mismatch
    from npumake.graph import Graph

STARS = "****************************"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "artifact", nargs="?", help="a compiled file with a statement, or PROJECT[:TARGET]"
    )
    parser.add_argument(
        "--statement", type=Path, metavar="FILE", help="default: beside the artifact"
    )
    parser.add_argument("--signed", action="store_true", help="refuse an unsigned statement")
    parser.add_argument("--rebuild", action="store_true", help="build it again from its project")
    parser.add_argument(
        "--project", type=Path, metavar="FOLDER", help="default: around the artifact"
    )
    parser.add_argument("-q", "--quanti-model", type=Path, metavar="ONNX")
    parser.add_argument("-b", "--bin-model", type=Path, metavar="HYBRID")
    parser.add_argument("-i", "--input-img", action="append", metavar="[NAME=]FILE")
    digits = ("-d", "--compare_digits", "--compare-digits")
    parser.add_argument(*digits, type=int, default=5, metavar="N", help="decimals compared, 5")
    code_trust.arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.artifact is not None:
        from npumake.cli.selection import artifact_path
        from npumake.cli.verify_statement import verify_statement

        arguments.artifact = artifact_path(arguments.artifact)
        return verify_statement(arguments)
    if arguments.quanti_model is None or arguments.bin_model is None:
        hint = "npumake verify FILE, or npumake verify -q ONNX -b HYBRID"
        raise ProjectError("nothing to verify", hint=hint)
    return _verify_graph(arguments)


def _verify_graph(arguments: argparse.Namespace) -> int:
    from npumake.bundle.opening import opened_one
    from npumake.bundle.pack import single
    from npumake.cli.run import feeds_of, files_of
    from npumake.debug.verify import changed_constants, program_of, verified
    from npumake.runtime.stripping import alike
    from npumake.runtime.timing import noise
    from npumake.targets.reader import read_target

    opening = keys_of(arguments)
    bundle = (
        opened_one(arguments.bin_model, keys=opening) if opening else single(arguments.bin_model)
    )
    session = code_trust.session(arguments, arguments.bin_model)
    whole = program_of(_graph(arguments.quanti_model), read_target(bundle.target))
    program = alike(whole, bundle)
    feeds = noise(session.get_inputs())
    if arguments.input_img:
        files = files_of(arguments.input_img, session.input_names)
        feeds |= feeds_of(session, files, None)
    feeds = session.offset(feeds, 128)
    image_feeds = {name: x[: len(x) // bundle.batch] if x.ndim else x for name, x in feeds.items()}
    operators = code_trust.operators(arguments, bundle, arguments.bin_model)
    compared = verified(program, bundle, image_feeds, arguments.compare_digits, operators)
    changed = list(changed_constants(program, bundle))
    for artifact in compared:
        _tell(artifact)
    for line in changed:
        print(f"changed: {line}")
    if changed or any(artifact.lines for artifact in compared):
        raise GateError("the bundle differs from the quantized graph", str(arguments.bin_model))
    print("Quanti onnx and bundle result Strict check PASSED")
    return 0


def _graph(file: Path) -> Graph:
    """The graph as built. Raises PipelineError for a missing or invalid file."""
    from npumake.borders.documented import as_built
    from npumake.graph import Graph, parse
    from npumake.runtime.picture import read

    data = read(file)
    parse(data, file.name)  # a clear error for an invalid model
    return as_built(Graph.from_bytes(data))


def _tell(mismatch: Mismatch) -> None:
    if not mismatch.lines:
        return
    print(f"output {mismatch.output}")
    print(f"mismatch line num: {mismatch.lines}", STARS, sep="\n")
    print(f"mismatch.line_miss num: {mismatch.miss}")
    print(f"mismatch.line_diff num: {mismatch.diff}")
    print(f"mismatch.line_nan num: {mismatch.nan}")
    print(STARS, f"total line num: {mismatch.total}", f"mismatch rate: {mismatch.rate}", sep="\n")
