"""compare: two model files on the same samples, output by output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from npumake.api.feeds import SampleSet, feeds_of
from npumake.api.table import Cell, Table, table_of
from npumake.errors import GraphError
from npumake.kernels import measure
from npumake.runtime.session import Session

COLUMNS = ("output", "cosine", "sqnr_db", "mse", "chebyshev")


def compare(before: Session | str | Path, after: Session | str | Path, samples: SampleSet) -> Table:
    """Per output of `before`, how close `after` is over all samples.

    Each is a Session or a file that Session opens. Outputs pair by name, else by position; so do
    inputs. The columns: cosine; signal to quantization noise in dB; mean squared and largest
    error. A file whose outputs are codes is compared by its codes.

    >>> import numpy as np
    >>> import npumake
    >>> samples = [{"image": np.full((1, 1, 8, 8), value, np.float32)} for value in (0, .5, 1)]
    >>> same = npumake.compare("projects/digits/model.onnx", "projects/digits/model.onnx", samples)
    >>> same["logits"]["chebyshev"]
    0.0

    Raises GraphError for a file that cannot run, for samples that do not fit, and for outputs that
    cannot be paired.
    """
    first, second = (_opened(entry) for entry in (before, after))
    feeds = feeds_of(samples, first.get_inputs())
    if not feeds:
        raise GraphError("there are no samples to compare on")
    pairs = _paired(first.output_names, second.output_names, "output")
    inputs = _paired(first.input_names, second.input_names, "input")
    first_outputs: dict[str, list[np.ndarray]] = {name: [] for name in pairs}
    second_outputs: dict[str, list[np.ndarray]] = {name: [] for name in pairs}
    for feed in feeds:
        renamed = {inputs[name]: array for name, array in feed.items()}
        _keep(first_outputs, zip(pairs, first.run(list(pairs), feed), strict=True))
        _keep(second_outputs, zip(pairs, second.run(list(pairs.values()), renamed), strict=True))
    rows = [_row(name, first_outputs[name], second_outputs[name]) for name in pairs]
    return table_of(f"{len(feeds)} samples", rows, COLUMNS)


def _opened(model: Session | str | Path) -> Session:
    return model if isinstance(model, Session) else Session(model)


def _keep(arrays: dict[str, list[np.ndarray]], run: Iterable[tuple[str, np.ndarray]]) -> None:
    for name, array in run:
        arrays[name].append(np.asarray(array, np.float64).ravel())


def _paired(first: tuple[str, ...], second: tuple[str, ...], kind: str) -> dict[str, str]:
    if set(first) == set(second):
        return {name: name for name in first}
    if len(first) != len(second):
        message = f"one has {len(first)} {kind}s, the other {len(second)}"
        raise GraphError(message, hint=f"{', '.join(first)}; {', '.join(second)}")
    return dict(zip(first, second, strict=True))


def _row(name: str, first: list[np.ndarray], second: list[np.ndarray]) -> Mapping[str, Cell]:
    """Raises GraphError for outputs of different sizes."""
    before, after = np.concatenate(first), np.concatenate(second)
    if before.shape != after.shape:
        raise GraphError(f"output `{name}` has {before.size} numbers here and {after.size} there")
    sums = measure.agreement(before, after)
    figures = (sums.cosine, sums.sqnr_db, sums.mse, sums.chebyshev)
    return dict(zip(COLUMNS, (name, *map(float, figures)), strict=True))
