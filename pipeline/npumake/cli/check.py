"""npumake check: the placement of each node on NPU or CPU, with the reasons

MODEL is a file, or a project with its own inputs and targets. Without --target a file is checked
for every chip, and the exit code is 3 if none runs it. With --target it is 3 if a node runs neither
on the NPU nor on the CPU. Open dimensions get usual sizes. For rdk-x5 it also estimates latency and
DDR bytes. --fix rewrites the model, with equal results, to move nodes to the NPU. It writes a new
file of the same opset and checks that again.

example:
  npumake check mobilenet.tflite                  # one line per chip
  npumake check mobilenet.onnx --target rdk-x5 --input-shape data 1x3x224x224
  npumake check projects/digits --target rdk-x3 --json
  npumake check mobilenet.onnx --target rdk-x3 --fix mobilenet.x3.onnx
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from npumake import digest
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.errors import GraphError, PipelineError, ProjectError, did_you_mean

if TYPE_CHECKING:
    from npumake.cli.model_file import ModelFiles
    from npumake.cli.selection import Selection
    from npumake.debug.model_check import ModelCheck, RewrittenModel
    from npumake.digest import Json
    from npumake.graph import Graph
    from npumake.perf.estimate import Estimate
    from npumake.project.sections import Quantization
    from npumake.targets.target import Target


def arguments(parser: argparse.ArgumentParser) -> None:
    from npumake.cli.vendors.project import shape_argument

    parser.add_argument(
        "model", nargs="?", default=".", metavar="MODEL", help="a model file or PROJECT[:TARGET]"
    )
    parser.add_argument("--target", metavar="CHIP", action="append", help="may be given again")
    shape_argument(parser, "--input-shape")
    parser.add_argument("--json", action="store_true", help="for machines")
    wide_argument(parser)
    format_argument(parser)
    parser.add_argument("--fix", metavar="OUT.onnx", type=Path, help="write a rewritten model")


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.selection import file_or_selection

    named = file_or_selection(arguments.model)
    is_file = isinstance(named, Path)
    if arguments.fix and (not is_file or len(arguments.target or ()) != 1):
        hint = "npumake check MODEL --target CHIP --fix OUT.onnx"
        raise ProjectError("`--fix` is for one model file and one target", "--fix", hint)
    checks = list(
        _of_file(arguments, named) if isinstance(named, Path) else _of_project(arguments, named)
    )
    if arguments.json:
        print(digest.text([check.document() for check in checks], indent=1))
    elif not arguments.target and is_file:
        _print_summary([check.checked for check in checks])
        return 0
    else:
        for check in checks:
            _print(check)
    _refuse_unsupported([check.checked for check in checks])
    return 0


class TargetCheck(NamedTuple):
    """The result for one target. Without an estimate, `why_none` may give the reason."""

    checked: ModelCheck
    estimate: Estimate | None
    why_none: str = ""

    def noting(self, notes: Sequence[str]) -> TargetCheck:
        """A copy with these notes before its own."""
        notes = (*notes, *self.checked.notes)
        return self._replace(checked=replace(self.checked, notes=notes))

    def document(self) -> Json:
        from npumake.perf.documents import document

        report: Json = self.checked.document()
        return {**report, "estimate": self.estimate and document(self.estimate)}


def _target_check(
    graph: Graph, target: Target, quantization: Quantization | None = None, inputs: Json = None
) -> TargetCheck:
    """Checks one target; `inputs` is the project's section. Raises ProjectError for an invalid
    `quantization`."""
    from npumake.cli.sketch import sketched
    from npumake.debug.model_check import check_model

    result = check_model(graph, target, quantization)
    try:
        return TargetCheck(result, sketched(graph, target, result.network, quantization, inputs))
    except PipelineError as error:  # it cannot be built: only the placement is known
        return TargetCheck(result, None, error.what)


def _of_project(arguments: argparse.Namespace, named: Selection) -> Iterator[TargetCheck]:
    """Checks a project with the placement of its build. Raises PipelineError."""
    from npumake.cli.vendors.project import build_hushed
    from npumake.dialects.advice import wording_of
    from npumake.graph import Graph
    from npumake.project.reader import built
    from npumake.project.sections import Quantization
    from npumake.targets.reader import read_target

    if arguments.input_shape:
        raise ProjectError("a project defines the shapes of its inputs itself", "--input-shape")
    if named.target and arguments.target:
        raise ProjectError(f"`{arguments.model}` has a target", "--target", "leave one of them out")
    project_build = build_hushed(
        named.build.directory, lambda node: node.stage == "optimized_float"
    )
    nodes = {node.name: node for node in project_build.plan.nodes}
    calibrated_nodes = named.nodes("calibrated")
    targets = arguments.target or [str(node.target) for node in calibrated_nodes]
    by_target = {node.target: node for node in calibrated_nodes}
    for name in targets:
        node = by_target.get(name, calibrated_nodes[0])
        optimized = nodes[node.inputs["optimized_float"]]
        graph = Graph.load(project_build.artifact(optimized))
        inputs = nodes[optimized.inputs["original_float"]].params["inputs"]
        quantization = node.params["quantization"] if name in by_target else {}
        check = _target_check(graph, read_target(name), built(Quantization, quantization), inputs)
        words = wording_of(project_build.vendor_dialect)
        yield check._replace(checked=check.checked.in_words(words.text))


def _of_file(arguments: argparse.Namespace, file: Path) -> Iterator[TargetCheck]:
    """Raises PipelineError."""
    from npumake.cli.model_file import held_files
    from npumake.cli.vendors.project import shapes
    from npumake.debug.model_check import check_model, prepared, rewritten
    from npumake.targets.reader import known_targets, read_target

    targets = [read_target(name) for name in arguments.target or known_targets()]
    input_shapes = {
        name: tuple(entry["shape"]) for name, entry in shapes(arguments.input_shape).items()
    }
    files = held_files(file, None)
    model, is_onnx = _read(files, input_shapes), file.suffix.lower() == ".onnx"
    closed = _close(model, files, may_guess=not arguments.fix)
    graph = prepared(model, is_onnx)
    notes = (*closed, *_open_branches(graph))
    for target in targets:
        if not arguments.target:
            yield TargetCheck(check_model(graph, target), None).noting(notes)
            continue
        check = _target_check(graph, target)
        yield check.noting(notes)
        if arguments.fix:
            better = rewritten(model, target, is_onnx)
            _write(better, check.checked, arguments.fix, arguments.json)
            yield TargetCheck(better.check, None)


def _read(files: ModelFiles, input_shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The model with the requested input shapes. Raises GraphError."""
    from npumake.frontends import RESHAPED, read_model, suffix_of

    other = input_shapes if suffix_of(files.model.name) in RESHAPED else {}
    model = read_model(files.model.read(), files.model.name, files.weights, other)
    inputs = {str(value.name): value for value in model.inputs}
    for name, dims in input_shapes.items():
        if name not in inputs:
            hint = did_you_mean(name, inputs)
            raise GraphError(f"the model has no input `{name}`", "--input-shape", hint)
        declared = inputs[name].shape
        if declared is not None and not _fits(tuple(declared), dims):
            message = f"shape {list(dims)} does not fit input `{name}`, which is {list(declared)}"
            raise GraphError(message, "--input-shape")
        model.set_input_shape(inputs[name], dims)
    return model


def _open_branches(graph: Graph) -> Iterator[str]:
    """A note on the inputs that select the branch of an If."""
    from npumake.graph import deciding_inputs

    conditions = [node.inputs[0] for node in graph.nodes("If")]
    names = dict.fromkeys(name for x in conditions if x is not None for name in deciding_inputs(x))
    for name in names:
        freeze = f"`inputs: {{{name}: {{value: ...}}}}`"
        yield f"`{name}` decides a branch: if it never changes, a project freezes it by {freeze}"


def _close(model: Graph, files: ModelFiles, *, may_guess: bool) -> Sequence[str]:
    """Gives the open inputs usual sizes, and notes which. Raises one GraphError for all open
    inputs if the model runs with none, and without `may_guess`."""
    from npumake.cli.open_sizes import closed_inputs
    from npumake.graph import open_dimensions
    from npumake.recognition.sizes import preferred_sizes

    values = {str(value.name): value for value in model.inputs}
    opened = {name: text for name, value in values.items() if (text := open_dimensions(value))}
    if not opened:
        return ()
    message = ", ".join(f"`{name}` {text}" for name, text in opened.items())
    hint = f"for example  --input-shape {next(iter(opened))} 1x3x224x224"
    refusal = GraphError(f"inputs leave dimensions open: {message}", files.model.name, hint)
    if not may_guess:
        raise refusal
    try:
        closed = closed_inputs(files, model, preferred_sizes(model))
    except GraphError:
        raise refusal from None
    sizes = {entry.name: entry.shape for entry in closed if entry.name in opened}
    for name, dims in sizes.items():
        model.set_input_shape(values[name], dims)
    texts = (f"`{name}` {opened[name]} as {'x'.join(map(str, d))}" for name, d in sizes.items())
    return (f"open dimensions: {', '.join(texts)}",)


def _fits(shape: tuple[Any, ...], dims: tuple[int, ...]) -> bool:
    pairs = zip(shape, dims, strict=False)
    return len(shape) == len(dims) and all(a == b for a, b in pairs if isinstance(a, int))


def _write(better: RewrittenModel, before: ModelCheck, out: Path, quiet: bool) -> None:
    """Writes the rewritten model. Raises ProjectError if `out` exists."""
    from npumake.cache.publish import replacing

    if out.exists():
        raise ProjectError("there is something already", str(out), "name a new file")
    if not better.applied:
        raise GraphError("no rewrite moves a node to the NPU", str(out), "nothing was written")
    with replacing(out) as temporary:
        temporary.write_bytes(better.model.to_bytes())
    if not quiet:
        print(f"wrote     {out}: {', '.join(better.applied)}")
        print(f"nodes on the CPU: {before.on_cpu} before, {better.check.on_cpu} now")


def _print(check: TargetCheck) -> None:
    from npumake.cli.tables import placement_lines, placement_table

    SCREEN.table(placement_table(check.checked.rows, SCREEN.width))
    for line in placement_lines(check.checked):
        SCREEN.line(line)
    for line in _estimate_lines(check.estimate):
        SCREEN.line(line)
    if check.why_none:
        SCREEN.line(f"not estimated: {check.why_none}")


def _print_summary(checks: list[ModelCheck]) -> None:
    """One line per target, and the notes on the model. Raises GraphError only if no target runs
    the model."""
    from npumake.cli.tables import targets_table

    SCREEN.table(targets_table(checks, SCREEN.width))
    for note in checks[0].notes:
        if all(note in check.notes for check in checks):
            SCREEN.line(f"note: {note}")
    _refuse_unsupported([] if any(not check.unsupported for check in checks) else checks)


def _estimate_lines(estimate: Estimate | None) -> Iterator[str]:
    from npumake.perf.assumed import megabytes
    from npumake.perf.estimate import latency_of

    if estimate is None or estimate.fitted is None or estimate.fps is None:
        return
    took = latency_of(estimate)
    yield f"estimated: latency {took}, {estimate.fps:.1f} FPS"
    moved = megabytes(estimate.loaded + estimate.stored, estimate.moved_interval)
    yield f"estimated: DDR {moved} MB per frame"
    yield f"    {estimate.fitted.on[0]}"


def _refuse_unsupported(checks: list[ModelCheck]) -> None:
    """Raises GraphError with all operators that neither NPU nor CPU supports."""
    for result in checks:
        listed = [f"{op} ({', '.join(names)})" for op, names in result.unsupported.items()]
        if listed:
            message = f"{result.target} supports these operators neither on NPU nor CPU"
            raise GraphError(f"{message}: {'; '.join(listed)}", hint="replace them in the model")
