"""Samples in the forms that people have them, as feeds by input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from npumake.engine.port import Port
from npumake.errors import GraphError

# One array per sample (of the only input), or a mapping by input per sample; an array or a mapping
# of arrays with a leading axis of samples.
Array = npt.NDArray[np.generic]
SampleSet = Iterable[Array] | Iterable[Mapping[str, Array]] | Mapping[str, Array] | Array


def feeds_of(samples: SampleSet, inputs: Sequence[Port]) -> list[dict[str, Array]]:
    """One mapping by input per sample, each array in the shape of its input.

    A sample may lack a leading axis of size 1. Raises GraphError for samples that do not fit.
    """
    by_name = {port.name: port for port in inputs}
    rows: Iterable[object] = _transposed(samples) if isinstance(samples, Mapping) else samples
    return [
        {name: _shaped(array, by_name[name], index) for name, array in _named(row, by_name, index)}
        for index, row in enumerate(rows)
    ]


def _transposed(samples: Mapping[str, Array]) -> list[dict[str, Array]]:
    sizes = {name: len(array) for name, array in samples.items()}
    if len(set(sizes.values())) > 1:
        listing = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise GraphError("the inputs have different numbers of samples", "samples", listing)
    count = next(iter(sizes.values()), 0)
    return [{name: array[index] for name, array in samples.items()} for index in range(count)]


def _named(row: object, inputs: Mapping[str, Port], index: int) -> Iterable[tuple[str, Array]]:
    if not isinstance(row, Mapping):
        if len(inputs) != 1:
            hint = f"give a mapping by input: {', '.join(inputs)}"
            raise GraphError(f"sample {index} is one array, for {len(inputs)} inputs", hint=hint)
        return [(next(iter(inputs)), np.asarray(row))]
    if set(row) != set(inputs):
        message = f"sample {index} holds {', '.join(map(str, row))}"
        raise GraphError(message, "samples", f"the inputs are {', '.join(inputs)}")
    return [(name, np.asarray(row[name])) for name in inputs]


def _shaped(array: Array, port: Port, index: int) -> Array:
    """The sample in the shape of its input, a missing first axis of size 1 added."""
    shape = port.shape
    if array.ndim == len(shape) - 1 and (shape[0] == 1 or not isinstance(shape[0], int)):
        array = array[np.newaxis]
    fits = array.ndim == len(shape) and all(
        not isinstance(size, int) or size == length
        for size, length in zip(shape, array.shape, strict=True)
    )
    if not fits:
        message = f"sample {index} of `{port.name}` is {list(array.shape)}, not {list(shape)}"
        raise GraphError(message, "samples")
    return array
