"""The child process of npumake.runtime.isolated: opens a file, runs it, writes its outputs.

It imports only the engine for the file's suffix.
"""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from npumake.errors import PipelineError
from npumake.late import when_used
from npumake.lifetime.parent import end_with_parent

with when_used(
    "npumake.bundle.archive",
    "npumake.custom.operators",
    "npumake.engine.untrusted_limits",
    "npumake.engine.exact",
    "npumake.engine.ort",
    "npumake.runtime.batched",
    "npumake.runtime.iree",
    "npumake.runtime.litert",
):
    from npumake.bundle import archive
    from npumake.custom import operators
    from npumake.engine import exact, ort, untrusted_limits
    from npumake.runtime import batched, iree, litert

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], tuple[Arrays, Arrays]]  # feeds → outputs, inner tensors

Taps = Collection[str]  # the names of inner tensors to return

REQUEST, OPENED, ERROR = "request.json", "opened", "error.json"
TAPPED = "tapped"  # the file with its inner tensors as outputs, without its suffix
MISTAKE = 3  # the exit status if the file ERROR holds the reason


def feed_file(folder: Path, run: int) -> Path:
    return folder / f"fed_{run}.npz"


def output_file(folder: Path, run: int) -> Path:
    return folder / f"made_{run}.npz"


def main(name: str) -> int:
    folder = Path(name)
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    _limit(request)
    try:
        taps = frozenset(request["taps"])
        file = folder / f"model{request['suffix']}"
        run = OPENERS[request["suffix"]](file, request["every"], taps)
        (folder / OPENED).touch()
        for number in range(request["runs"]):
            with np.load(feed_file(folder, number), allow_pickle=False) as arrays:
                feed = {name: arrays[str(at)] for at, name in enumerate(request["inputs"])}
            _write(output_file(folder, number), *run(feed))
    except PipelineError as error:
        (folder / ERROR).write_text(json.dumps({"what": error.what}), encoding="utf-8")
        return MISTAKE
    return 0


def _limit(request: Mapping[str, Any]) -> None:
    """Limits time and memory, disables core dumps, and ends the child with its parent."""
    end_with_parent(request["parent"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    requested = request["memory"]
    limit = requested if hard_limit == resource.RLIM_INFINITY else min(requested, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard_limit))
    signal.alarm(request["seconds"])


def _write(file: Path, outputs: Arrays, inner: Arrays) -> None:
    """Writes atomically: an existing file marks a finished run."""
    names = {"outputs": list(outputs), "inner": list(inner)}
    file.with_suffix(".json").write_text(json.dumps(names), encoding="utf-8")
    partial = file.with_suffix(".part.npz")
    arrays = [*outputs.values(), *inner.values()]
    np.savez(partial, **{str(at): array for at, array in enumerate(arrays)})  # type: ignore[arg-type]  # of its own keyword
    partial.rename(file)


class _Session(Protocol):
    @property
    def output_names(self) -> tuple[str, ...]: ...

    def run(self, names: Sequence[str] | None, feeds: Arrays) -> list[np.ndarray]: ...


def _outputs(session: _Session, feed: Arrays) -> Arrays:
    return dict(zip(session.output_names, session.run(None, feed), strict=True))


def _litert(path: Path, every: bool, taps: Taps) -> Run:
    """The second interpreter keeps all tensors, which the first one lays over each other."""
    opened = litert.LiteRtSession(path.read_bytes(), path.name)
    keeping = litert.LiteRtSession(path.read_bytes(), path.name, every=True) if every else None

    def run(feed: Arrays) -> tuple[Arrays, Arrays]:
        if keeping is None:
            return _outputs(opened, feed), {}
        keeping.run((), feed)
        return _outputs(opened, feed), keeping.tensors(taps)

    return run


def _onnx(path: Path, every: bool, taps: Taps) -> Run:
    opened = ort.OrtSession(path.read_bytes())
    tapped = ort.OrtSession(path.with_stem(TAPPED).read_bytes()) if every else None

    def run(feed: Arrays) -> tuple[Arrays, Arrays]:
        return _outputs(opened, feed), {} if tapped is None else _outputs(tapped, feed)

    return run


def _vmfb(path: Path, every: bool, taps: Taps) -> Run:
    """IREE shows no inner tensors."""
    opened = iree.IreeSession(path)
    return lambda feed: (_outputs(opened, feed), {})


def _bundle(path: Path, every: bool, taps: Taps) -> Run:
    """As a Session with allow_code opens it, but without the imports for secure files."""
    bundle = archive.Bundle.load(path)
    untrusted_limits.refuse_unbounded(bundle.program)
    inside = tuple(name for step in bundle.program.instructions for name in step.outputs)
    own = operators.operators_in(bundle.code)
    session = exact.ExactSession(bundle.program, own, watched=inside if every else ())
    opened = session if bundle.batch == 1 or every else batched.Batched(session, bundle.batch)

    def run(feed: Arrays) -> tuple[Arrays, Arrays]:
        if not every:
            return _outputs(opened, feed), {}
        names = tuple(dict.fromkeys([*session.output_names, *inside]))
        arrays = dict(zip(names, session.run(names, feed), strict=True))
        return {name: arrays[name] for name in session.output_names}, arrays

    return run


OPENERS: Mapping[str, Callable[[Path, bool, Taps], Run]] = {
    ".hybrid": _bundle,
    ".onnx": _onnx,
    ".tflite": _litert,
    ".vmfb": _vmfb,
}
