"""Session: one interface over onnxruntime and the integer engine, chosen by the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.bundle.archive import Bundle
from pipeline.custom.operators import Operators, operators_in, require
from pipeline.engine.mixed import FloatSession, float_session
from pipeline.engine.ort import OrtSession
from pipeline.engine.reference import ReferenceSession
from pipeline.errors import GraphError, did_you_mean
from pipeline.graph import parse
from pipeline.runtime.batched import Batched
from pipeline.runtime.iree import IreeSession
from pipeline.runtime.litert import LiteRtSession

Engine = FloatSession | ReferenceSession | Batched | LiteRtSession | IreeSession


class Trust(NamedTuple):
    """Which Python may run: the caller's own operators, or what the file brings."""

    operators: Operators
    allow_code: bool


def _onnx(path: Path, trust: Trust) -> Engine:
    data = path.read_bytes()
    if trust.operators.by_type:
        return float_session(parse(data, path.name), trust.operators)
    try:
        return OrtSession(data)
    except GraphError:
        require(parse(data, path.name), trust.operators)  # the likely reason, in our words
        raise


def _bundle(path: Path, trust: Trust) -> Engine:
    bundle = Bundle.load(path)
    session = ReferenceSession(bundle.program, _trusted(bundle, path, trust))
    return session if bundle.batch == 1 else Batched(session, bundle.batch)


def _trusted(bundle: Bundle, path: Path, trust: Trust) -> Operators:
    """The caller's operators; else the bundle's own. Raises GraphError for these unasked."""
    if trust.operators.by_type or not bundle.code:
        return trust.operators
    if not trust.allow_code:
        raise GraphError(
            f"the bundle brings Python to run: {', '.join(bundle.code)}",
            path.name,
            "if you trust who made it: Session(path, allow_code=True)",
        )
    return operators_in(bundle.code)


def _tflite(path: Path, trust: Trust) -> Engine:
    return LiteRtSession(path.read_bytes(), path.name)


def _vmfb(path: Path, trust: Trust) -> Engine:
    if not trust.allow_code:
        hint = "if you trust who made it: Session(path, allow_code=True)"
        raise GraphError("a .vmfb is native code to run", path.name, hint)
    return IreeSession(path)


ENGINES: dict[str, Callable[[Path, Trust], Engine]] = {
    ".onnx": _onnx,
    ".tflite": _tflite,
    ".vmfb": _vmfb,
    Bundle.suffix: _bundle,
}


class Session:
    """`Session(path).run(None, {"image": pixels})`: every output for one set of feeds.

    `.onnx` runs in onnxruntime, `.hybrid` in exact integers, `.tflite` in the reference kernels of
    LiteRT, `.vmfb` in IREE; these two take and give images NHWC. Raises GraphError for a file that
    cannot be run, and for feeds that do not fit.

    A model with custom operators runs the user's Python, and only when told to: `operators` are
    files of the caller's own, `allow_code` takes those that a bundle brings.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        operators: Iterable[str | Path] = (),
        allow_code: bool = False,
    ) -> None:
        path = Path(path)
        if path.suffix not in ENGINES:
            known = ", ".join(sorted(ENGINES))
            raise GraphError(f"no engine runs a `{path.suffix}` file", str(path), f"known: {known}")
        if not path.is_file():
            raise GraphError("no such file", str(path))
        self._engine = ENGINES[path.suffix](path, Trust(_read(operators), allow_code))
        self.input_names: tuple[str, ...] = self._engine.input_names
        self.output_names: tuple[str, ...] = self._engine.output_names

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The named outputs, all of them when None, in order."""
        _refuse_unknown("output", names or (), self.output_names)
        _refuse_unknown("input", feeds, self.input_names)
        return self._engine.run(names, feeds)


def _read(files: Iterable[str | Path]) -> Operators:
    """The operators in the caller's own files."""
    sources = {}
    for file in map(Path, files):
        if not file.is_file():
            raise GraphError("no such file", str(file))
        sources[file.name] = file.read_bytes()
    return operators_in(sources)


def _refuse_unknown(kind: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise GraphError(f"no {kind} `{name}`", hint=did_you_mean(name, known))
