"""Session: one interface to all engines, chosen by the file's suffix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from npumake.bundle.archive import Bundle
from npumake.bundle.opening import opened_one
from npumake.custom.operators import Operators, operators_in, require
from npumake.engine.exact import ExactSession
from npumake.engine.float_session import FloatSession, float_session
from npumake.engine.ort import Feeds, OrtSession
from npumake.engine.port import Port
from npumake.engine.untrusted_limits import refuse_unbounded
from npumake.errors import GraphError, did_you_mean
from npumake.graph import parse
from npumake.late import when_used
from npumake.project.files import model_bytes
from npumake.runtime.batched import Batched
from npumake.runtime.iree import IreeSession
from npumake.runtime.litert import LiteRtSession
from npumake.runtime.openvino import OpenVinoSession

with when_used("npumake.bundle.secure"):  # it brings the cryptography along
    from npumake.bundle import secure


TRUSTING = "if you trust its author: --allow-code, Session(path, allow_code=True)"
Engine = FloatSession | ExactSession | Batched | LiteRtSession | IreeSession | OpenVinoSession


class Trust(NamedTuple):
    """The caller's options: own operators, permission for the file's code, number of threads (None:
    the engine decides), model of a packed file, keys. With keys only secure files open."""

    operators: Operators
    allow_code: bool
    threads: int | None = None
    model: str | None = None
    keys: secure.Keys | None = None


def _onnx(path: Path, trust: Trust) -> Engine:
    data = model_bytes(path)
    if trust.operators.by_type:
        return float_session(parse(data, path.name), trust.operators)
    try:
        return OrtSession(data, trust.threads or 1)
    except GraphError:
        require(parse(data, path.name), trust.operators)  # the likely reason, a clearer error
        raise


def _bundle(path: Path, trust: Trust) -> Engine:
    bundle = opened_one(path, trust.model, trust.keys)
    operators = _trusted(bundle, path.name, trust.operators, trust.allow_code)
    refuse_unbounded(bundle.program)
    session = ExactSession(bundle.program, operators, trust.threads)
    return session if bundle.batch == 1 else Batched(session, bundle.batch)


def operators_of(
    bundle: Bundle, name: str, files: Iterable[str | Path] = (), allow_code: bool = False
) -> Operators:
    """The operators that a session of the bundle runs. Raises GraphError."""
    return _trusted(bundle, name, _read(files), allow_code)


def _trusted(bundle: Bundle, name: str, own: Operators, allow_code: bool) -> Operators:
    """The caller's operators, else the bundle's. Raises GraphError unless those are allowed."""
    if own.by_type or not bundle.code:
        return own
    if not allow_code:
        message = f"the bundle contains Python to run: {', '.join(bundle.code)}"
        raise GraphError(message, name, TRUSTING)
    return operators_in(bundle.code)


def _tflite(path: Path, trust: Trust) -> Engine:
    return LiteRtSession(model_bytes(path), path.name)


def _vmfb(path: Path, trust: Trust) -> Engine:
    if not trust.allow_code:
        raise GraphError("a .vmfb is native code to run", path.name, TRUSTING)
    return IreeSession(path)


def _openvino(path: Path, trust: Trust) -> Engine:
    return OpenVinoSession(model_bytes(path), path.name, trust.threads or 1)


ENGINES: dict[str, Callable[[Path, Trust], Engine]] = {
    ".onnx": _onnx,
    ".tflite": _tflite,
    ".vmfb": _vmfb,
    ".zip": _openvino,
    Bundle.suffix: _bundle,
}


class Session:
    """`Session(path).run(None, {"image": pixels})`: every output for one set of feeds.

    `.onnx` runs in onnxruntime, `.hybrid` in exact integers, `.tflite` in LiteRT's reference
    kernels, `.vmfb` in IREE, `.zip` in OpenVINO. `.tflite` and `.vmfb` take and return images as
    NHWC. `threads` defaults to one per core for `.hybrid`, else to 1: more may change the last bit
    of a sum.
    `model` selects a model of a packed file. With `keys`, unsigned models are refused: the file
    must be a secure `.hybrid`, which is verified and decrypted in memory.

    Custom operators are Python and run only by permission: `operators` lists the caller's own
    files, `allow_code` permits those in the bundle.

    Raises GraphError for a file that cannot run, and for feeds that do not fit.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        operators: Iterable[str | Path] = (),
        allow_code: bool = False,
        threads: int | None = None,
        model: str | None = None,
        keys: secure.Keys | None = None,
    ) -> None:
        path = Path(path)
        if keys and path.suffix != Bundle.suffix:
            raise GraphError(f"no `{path.suffix}` file is signed", str(path))
        if path.is_dir():
            raise GraphError("a directory, no model", str(path), "a project's are in its out/")
        if path.suffix not in ENGINES:
            suffixes = ", ".join(sorted(ENGINES))
            raise GraphError(
                f"no engine runs a `{path.suffix}` file", str(path), f"known: {suffixes}"
            )
        if not path.is_file():
            raise GraphError("no such file", str(path))
        self._engine = ENGINES[path.suffix](
            path, Trust(_read(operators), allow_code, threads, model, keys)
        )
        self.input_names: tuple[str, ...] = self._engine.input_names
        self.output_names: tuple[str, ...] = self._engine.output_names

    def get_inputs(self) -> tuple[Port, ...]:
        """Name, shape and type of each input, in order."""
        return self._engine.inputs

    def get_outputs(self) -> tuple[Port, ...]:
        return self._engine.outputs

    def run(
        self, names: Sequence[str] | None, feeds: Feeds, input_offset: int = 128
    ) -> list[np.ndarray]:
        """The named outputs (None: all), in order.

        uint8 feeds are pixels: an input of another type gets pixel - `input_offset`. Other arrays
        are fed unchanged.
        """
        _refuse_unknown("output", names or (), self.output_names)
        _refuse_unknown("input", feeds, self.input_names)
        return self._engine.run(names, self.offset(feeds, input_offset))

    def run_feature(
        self, names: Sequence[str] | None, feeds: Feeds, input_offset: int = 0
    ) -> list[np.ndarray]:
        """As `run`, for feature maps: without an offset."""
        return self.run(names, feeds, input_offset)

    def run_batch(
        self, names: Sequence[str] | None, feeds: Feeds, input_offset: int = 128
    ) -> list[np.ndarray]:
        """As `run`, for many runs concatenated along the first axis of every input; outputs are
        concatenated likewise. Raises GraphError unless the feeds fill whole runs."""
        sizes = {p.name: p.shape[0] for p in self.get_inputs() if p.shape}
        counts = {
            divmod(len(x), size)
            for name, x in feeds.items()
            if x.ndim and isinstance(size := sizes.get(name), int) and size
        }
        count, rest = min(counts, default=(0, 0))
        if len(counts) != 1 or count == 0 or rest:
            raise GraphError("each input needs feeds for the same whole number of runs")
        cut = {name: np.split(x, count) for name, x in feeds.items()}
        runs = [
            self.run(names, {name: parts[at] for name, parts in cut.items()}, input_offset)
            for at in range(count)
        ]
        return [np.concatenate(outputs) for outputs in zip(*runs, strict=True)]

    def offset(self, feeds: Feeds, offset: int) -> dict[str, np.ndarray]:
        """The feeds with uint8 pixels as codes; other types unchanged."""
        takes = {port.name: port.dtype for port in self.get_inputs()}
        return {
            name: (x.astype(np.int32) - offset).astype(takes[name])
            if x.dtype == np.uint8 != takes[name]
            else x
            for name, x in feeds.items()
        }


def _read(files: Iterable[str | Path]) -> Operators:
    """The operators in the caller's own files."""
    sources = {}
    for file in map(Path, files):
        if not file.is_file():
            raise GraphError("no such file", str(file))
        sources[file.name] = file.read_bytes()
    return operators_in(sources)


def _refuse_unknown(kind: str, names: Iterable[str], allowed: Sequence[str]) -> None:
    for name in names:
        if name not in allowed:
            raise GraphError(f"no {kind} `{name}`", hint=did_you_mean(name, allowed))
