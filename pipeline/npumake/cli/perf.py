"""npumake perf: operations, bytes and latency of a compiled model, estimated (hb_perf)

MODEL is a .hybrid, a .tflite that Vela compiled, or a project, whose compiled files are built
first. It writes hb_perf_result/<name>/: <name>.html, .json and .png, and .html and .json of each
subgraph. The latency of rdk-x5 is fitted on published figures of whole models and has an interval.
Other targets use Vela's estimate, or a roofline of the published peaks. Without a published DDR
bandwidth the roofline is a lower bound: compute only. --ddr sets the bandwidth of your board.

example:
  npumake perf out/mobilenet.rdk-x5.hybrid --ddr 8.5
  npumake perf projects/digits --json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from npumake import digest
from npumake.cache.folders import cure_of
from npumake.cli import keys
from npumake.errors import GraphError, ProjectError

if TYPE_CHECKING:
    from npumake.bundle.archive import Bundle
    from npumake.digest import Json
    from npumake.perf.estimate import Estimate

FOLDER = Path("hb_perf_result")
HINT = "perf is for a .hybrid and for files of Vela; `npumake bench` measures here"
NO_LAYERS = (
    "WARNING bpu model don't have per-layer perf info.",
    "WARNING if you need per-layer perf info please enable"
    "[compiler_parameters.debug:True] when use makertbin.",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", nargs="?", default=".", metavar="MODEL", help="a compiled file or PROJECT[:TARGET]"
    )
    parser.add_argument("-m", dest="name", metavar="NAME", help="one of a packed model")
    parser.add_argument(
        "-p", action="store_true", help="of a packed model; a pack is detected without it"
    )
    parser.add_argument("--ddr", type=float, metavar="GB/S", help="of the DDR, if you know it")
    parser.add_argument("--html", type=Path, default=FOLDER, metavar="DIR", help=str(FOLDER))
    parser.add_argument("--json", action="store_true", help="for machines")
    keys.arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.perf.vela import SUFFIX

    if arguments.ddr is not None and not 0 < arguments.ddr < 1e6:
        raise ProjectError(f"a DDR of {arguments.ddr} GB/s", "--ddr", "for example  --ddr 8.5")
    documents: list[Mapping[str, Json]] = []
    for path in _files(arguments.model):
        documents += list(
            _of_vela(path, arguments) if path.suffix == SUFFIX else _of_bundle(path, arguments)
        )
    if arguments.json:
        print(digest.text(documents, indent=1))
    return 0


def _files(model: str) -> list[Path]:
    """The compiled files: the given one, or those of a project. Raises PipelineError."""
    from npumake.cli.selection import file_or_selection
    from npumake.cli.vendors.project import build_hushed

    named = file_or_selection(model)
    if isinstance(named, Path):
        return [named]
    names = {node.name for node in named.compiled_nodes}
    project_build = build_hushed(named.build.directory, lambda node: node.name in names)
    files = [
        project_build.artifact(node) for node in project_build.plan.nodes if node.name in names
    ]
    estimable = [file for file in files if _is_estimated(file)]
    for file in files:
        if file not in estimable:
            print(f"{file.name}: no estimate; {HINT}", file=sys.stderr)
    if not estimable:
        raise GraphError("none of the compiled files has an estimate", model, HINT)
    return estimable


def _is_estimated(file: Path) -> bool:
    from npumake.bundle.archive import Bundle
    from npumake.perf.vela import SUFFIX, has_estimate

    if file.suffix == SUFFIX:
        return has_estimate(file.read_bytes())
    return file.suffix == Bundle.suffix


def _of_bundle(path: Path, arguments: argparse.Namespace) -> Iterator[Mapping[str, Json]]:
    from npumake.bundle.opening import opened
    from npumake.perf.documents import document
    from npumake.perf.estimate import estimate_bundle
    from npumake.targets.reader import read_target

    for name, bundle in opened(path, arguments.name, keys.keys_of(arguments)).items():
        ddr = None if arguments.ddr is None else arguments.ddr * 1e9
        estimate = estimate_bundle(name, bundle, read_target(bundle.target), ddr)
        _write(arguments.html / name, estimate, bundle)
        if not arguments.json:
            print(*_lines(estimate, arguments.html / name), sep="\n")
        yield document(estimate)


def _of_vela(path: Path, arguments: argparse.Namespace) -> Iterator[Mapping[str, Json]]:
    from npumake.perf.vela import SUFFIX, read_vela, vela_lines, vela_page

    if keys.keys_of(arguments):
        raise GraphError(f"no `{SUFFIX}` file is signed", str(path))
    report = read_vela(path)
    texts = {f"{path.stem}.html": vela_page(path.stem, report)}
    texts[f"{path.stem}.json"] = digest.text(report, indent=1) + "\n"
    _put(arguments.html / path.stem, {name: text.encode() for name, text in texts.items()})
    if not arguments.json:
        print(*vela_lines(path.stem, report), f"wrote     {arguments.html / path.stem}", sep="\n")
    yield {"model name": path.stem, **report}


def _write(folder: Path, estimate: Estimate, bundle: Bundle) -> None:
    from npumake.perf.documents import document, subgraph_document
    from npumake.perf.estimate import latency_of
    from npumake.perf.page import model_page, subgraph_page
    from npumake.perf.picture import picture

    took = latency_of(estimate)
    caption = f"{took} on {estimate.target}, estimated"
    png = picture(bundle.program, estimate.name, caption)
    files = {
        f"{estimate.name}.html": model_page(estimate, png).encode(),
        f"{estimate.name}.json": _json(document(estimate)),
        f"{estimate.name}.png": png,
    }
    for part in estimate.subgraphs:
        files[f"{part.name}.html"] = subgraph_page(part, estimate).encode()
        files[f"{part.name}.json"] = _json(subgraph_document(part, estimate))
    _put(folder, files)


def _put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files. Raises GraphError for an invalid or unwritable folder."""
    if folder.name in ("", ".."):
        raise GraphError(f"`{folder.name}` cannot name a folder", str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        hint = cure_of(folder, error.errno)
        raise GraphError(f"cannot write: {error.strerror}", str(folder), hint) from error


def _json(document: Mapping[str, Json]) -> bytes:
    return (digest.text(document, indent=1) + "\n").encode()


def _lines(estimate: Estimate, folder: Path) -> Iterator[str]:
    from npumake.perf.assumed import latency_text
    from npumake.perf.estimate import latency_of

    memory = estimate.memory
    yield f"{estimate.name} on {estimate.target}, per frame, estimated"
    took = latency_of(estimate)
    yield f"  latency        {took}" + (f", {estimate.fps:.1f} FPS" if estimate.fps else "")
    yield from _fitted_lines(estimate)
    yield f"  operations     {estimate.ops}"
    yield f"  DDR bytes      {estimate.loaded} loaded, {estimate.stored} stored"
    ratio = (
        f", {memory.peak / memory.live_peak:.3f} of the largest live set"
        if memory.live_peak
        else ""
    )
    yield f"  arena bytes    {memory.peak} at the peak{ratio}"
    for part in estimate.subgraphs:
        calls = f", {part.calls} function calls" if part.calls else ""
        time = latency_text(part.latency, part.at_least)
        yield f"  {part.name}: {len(part.layers)} layers, {part.ops} OPs, {time}{calls}"
    if estimate.on_cpu:
        yield f"  on the CPU, not in these figures: {', '.join(estimate.on_cpu[:8])}"
    yield from (f"  assumed: {assumption}" for assumption in estimate.assumptions)
    if not estimate.debug:
        yield from NO_LAYERS
    yield f"wrote     {folder}"


def _fitted_lines(estimate: Estimate) -> Iterator[str]:
    from npumake.perf.assumed import megabytes

    if estimate.on_board is None:
        return
    moved = megabytes(estimate.loaded + estimate.stored, estimate.moved_interval)
    yield f"  DDR            {moved} MB"
    yield f"  at least       {1000 * estimate.at_least:.3g} ms, computing at the unit's peak"
    yield f"  on the board   {1000 * estimate.on_board:.3g} ms a run, one thread"
