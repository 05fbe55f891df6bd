"""Session: one interface over onnxruntime and the integer engine, chosen by the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline.bundle.archive import Bundle
from pipeline.engine.ort import OrtSession
from pipeline.engine.reference import ReferenceSession
from pipeline.errors import GraphError, did_you_mean
from pipeline.runtime.batched import Batched

Engine = OrtSession | ReferenceSession | Batched


def _onnx(path: Path) -> Engine:
    return OrtSession(path.read_bytes())


def _bundle(path: Path) -> Engine:
    bundle = Bundle.load(path)
    session = ReferenceSession(bundle.program)
    return session if bundle.batch == 1 else Batched(session, bundle.batch)


ENGINES: dict[str, Callable[[Path], Engine]] = {".onnx": _onnx, Bundle.suffix: _bundle}


class Session:
    """`Session(path).run(None, {"image": pixels})`: every output for one set of feeds.

    `.onnx` runs in onnxruntime, `.hybrid` in exact integers. Raises GraphError for a file that
    cannot be run, and for feeds that do not fit.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if path.suffix not in ENGINES:
            known = ", ".join(sorted(ENGINES))
            raise GraphError(f"no engine runs a `{path.suffix}` file", str(path), f"known: {known}")
        if not path.is_file():
            raise GraphError("no such file", str(path))
        self._engine = ENGINES[path.suffix](path)
        self.input_names: tuple[str, ...] = self._engine.input_names
        self.output_names: tuple[str, ...] = self._engine.output_names

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The named outputs, all of them when None, in order."""
        _refuse_unknown("output", names or (), self.output_names)
        _refuse_unknown("input", feeds, self.input_names)
        return self._engine.run(names, feeds)


def _refuse_unknown(kind: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise GraphError(f"no {kind} `{name}`", hint=did_you_mean(name, known))
