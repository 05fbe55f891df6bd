"""npumake check: where each node of a model would run, and what keeps one off the NPU

MODEL is a file, or a project, which says its inputs and targets itself. For rdk-x5 the latency and
the DDR bytes of a build are estimated too. With --fix the model is rewritten where that brings
nodes onto the NPU without changing what it computes, written to a new file of the same opset, and
checked again.

example:
  npumake check mobilenet.onnx --target rdk-x5 --input-shape data 1x3x224x224
  npumake check projects/digits --target rdk-x3 --json
  npumake check mobilenet.onnx --target rdk-x3 --fix mobilenet.x3.onnx
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from npumake import digest
from npumake.cli.screen import SCREEN, wide_argument
from npumake.errors import GraphError, PipelineError, ProjectError, did_you_mean

if TYPE_CHECKING:
    from npumake.cli.model_file import ModelFiles
    from npumake.debug.model_check import ModelCheck, RewrittenModel
    from npumake.digest import Json
    from npumake.graph import Graph
    from npumake.perf.estimate import Estimate
    from npumake.project.sections import Quantization
    from npumake.targets.target import Target


def arguments(parser: argparse.ArgumentParser) -> None:
    from npumake.cli.dropin import shape_argument

    parser.add_argument("model", metavar="MODEL", type=Path, help="a model file or a project")
    parser.add_argument("--target", metavar="CHIP", action="append", help="may be given again")
    shape_argument(parser, "--input-shape")
    parser.add_argument("--json", action="store_true", help="for machines")
    wide_argument(parser)
    parser.add_argument("--fix", metavar="OUT.onnx", type=Path, help="write a rewritten model")


def run(given: argparse.Namespace) -> int:
    if given.fix and (given.model.is_dir() or len(given.target or ()) != 1):
        hint = "npumake check MODEL --target CHIP --fix OUT.onnx"
        raise ProjectError("`--fix` is for one model file and one target", "--fix", hint)
    found = list((_of_project if given.model.is_dir() else _of_file)(given))
    if given.json:
        print(digest.text([one.document() for one in found], indent=1))
    else:
        for one in found:
            _print(one)
    _refuse_unsupported([one.check for one in found])
    return 0


class Found(NamedTuple):
    """What is found of one target. No estimate where none was fitted, or for a reason."""

    check: ModelCheck
    estimate: Estimate | None
    why_none: str = ""

    def document(self) -> Json:
        from npumake.perf.documents import document

        told: Json = self.check.document()
        return {**told, "estimate": self.estimate and document(self.estimate)}


def _found(
    graph: Graph, target: Target, wishes: Quantization | None = None, inputs: Json = None
) -> Found:
    """`inputs` as the project says them. Raises ProjectError for wishes that mean nothing."""
    from npumake.cli.sketch import sketched
    from npumake.debug.model_check import check_model

    result = check_model(graph, target, wishes)
    try:
        return Found(result, sketched(graph, target, result.network, wishes, inputs))
    except PipelineError as error:  # no build takes it: where its nodes run is all there is
        return Found(result, None, error.what)


def _of_project(given: argparse.Namespace) -> Iterator[Found]:
    """As its build places the nodes. Raises PipelineError."""
    from npumake.cli.dropin import build
    from npumake.graph import Graph
    from npumake.project.reader import built
    from npumake.project.sections import Quantization
    from npumake.targets.advice import words_of
    from npumake.targets.reader import read_target

    if given.input_shape:
        raise ProjectError("a project says the shapes of its inputs itself", "--input-shape")
    with SCREEN.hushed():
        made = build(given.model, lambda node: node.stage == "optimized_float")
    nodes = {node.name: node for node in made.plan.nodes}
    ours = [n for n in nodes.values() if n.stage == "calibrated" and n.variant is None]
    wanted = given.target or [str(node.target) for node in ours]
    by_target = {node.target: node for node in ours}
    for name in wanted:
        node = by_target.get(name, ours[0])
        optimized = nodes[node.inputs["optimized_float"]]
        graph = Graph.load(made.artifact(optimized))
        inputs = nodes[optimized.inputs["original_float"]].params["inputs"]
        wishes = node.params["quantization"] if name in by_target else {}
        found = _found(graph, read_target(name), built(Quantization, wishes), inputs)
        words = words_of(made.vendor_dialect)
        yield found._replace(check=found.check.in_words(words.text))


def _of_file(given: argparse.Namespace) -> Iterator[Found]:
    """Raises PipelineError."""
    from npumake.cli.dropin import shapes
    from npumake.cli.model_file import held_files
    from npumake.debug.model_check import prepared, rewritten
    from npumake.targets.reader import read_target, target_names

    if not given.target:
        raise ProjectError("which target?", "--target", did_you_mean("", target_names()))
    targets = [read_target(name) for name in given.target]
    fed = {name: tuple(said["shape"]) for name, said in shapes(given.input_shape).items()}
    held = held_files(given.model, None)
    model, is_onnx = _read(held, fed), given.model.suffix.lower() == ".onnx"
    graph = prepared(model, is_onnx)
    for target in targets:
        found = _found(graph, target)
        yield found
        if given.fix:
            better = rewritten(model, target, is_onnx)
            _write(better, found.check, given.fix, given.json)
            yield Found(better.check, None)


def _read(held: ModelFiles, fed: Mapping[str, tuple[int, ...]]) -> Graph:
    """The model with every input's shape fixed. Raises GraphError, for all inputs at once."""
    from npumake.frontends import RESHAPED, read_model, suffix_of
    from npumake.graph import open_dimensions

    other = fed if suffix_of(held.model.name) in RESHAPED else {}
    model = read_model(held.model.read(), held.model.name, held.weights, other)
    known = {str(value.name): value for value in model.inputs}
    for name, dims in fed.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise GraphError(f"the model has no input `{name}`", "--input-shape", hint)
        said = known[name].shape
        if said is not None and not _fits(tuple(said), dims):
            what = f"shape {list(dims)} does not fit input `{name}`, which is {list(said)}"
            raise GraphError(what, "--input-shape")
        model.set_input_shape(known[name], dims)
    if opened := {name: text for name, v in known.items() if (text := open_dimensions(v))}:
        what = ", ".join(f"`{name}` {text}" for name, text in opened.items())
        hint = f"for example  --input-shape {next(iter(opened))} 1x3x224x224"
        raise GraphError(f"inputs leave dimensions open: {what}", held.model.name, hint)
    return model


def _fits(said: tuple[Any, ...], dims: tuple[int, ...]) -> bool:
    pairs = zip(said, dims, strict=False)
    return len(said) == len(dims) and all(a == b for a, b in pairs if isinstance(a, int))


def _write(better: RewrittenModel, before: ModelCheck, out: Path, quiet: bool) -> None:
    """Raises ProjectError for a file that is there."""
    from npumake.cache.publish import replacing

    if out.exists():
        raise ProjectError("there is something already", str(out), "name a new file")
    if not better.applied:
        raise GraphError("no rewrite brings a node onto the NPU", str(out), "nothing was written")
    with replacing(out) as temporary:
        temporary.write_bytes(better.model.to_bytes())
    if not quiet:
        print(f"wrote     {out}: {', '.join(better.applied)}")
        print(f"nodes on the CPU: {before.on_cpu} before, {better.check.on_cpu} now")


def _print(found: Found) -> None:
    from npumake.cli.tables import placement_lines, placement_table

    SCREEN.table(placement_table(found.check.rows, SCREEN.width))
    for line in placement_lines(found.check):
        SCREEN.line(line)
    for line in _estimate_lines(found.estimate):
        SCREEN.line(line)
    if found.why_none:
        SCREEN.line(f"not estimated: {found.why_none}")


def _estimate_lines(found: Estimate | None) -> Iterator[str]:
    from npumake.perf.assumed import megabytes
    from npumake.perf.estimate import latency_of

    if found is None or found.fitted is None or found.fps is None:
        return
    took = latency_of(found)
    yield f"estimated: latency {took}, {found.fps:.1f} FPS"
    moved = megabytes(found.loaded + found.stored, found.moved_interval)
    yield f"estimated: DDR {moved} MB per frame"
    yield f"    {found.fitted.on[0]}"


def _refuse_unsupported(found: list[ModelCheck]) -> None:
    """Raises GraphError with every operator that no unit of a chip runs."""
    for result in found:
        listed = [f"{op} ({', '.join(names)})" for op, names in result.unsupported.items()]
        if listed:
            what = f"{result.target} runs none of these, not on its CPU either: {'; '.join(listed)}"
            raise GraphError(what, hint="compute it before or behind the model, or write it anew")
