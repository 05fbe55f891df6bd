"""A model's inputs with fixed shapes: open sizes become the first with which the model runs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from npumake.cli.model_file import ModelFiles
from npumake.errors import GraphError

if TYPE_CHECKING:
    from npumake.cli.template import TemplateInput
    from npumake.graph import Graph

# Candidates for open image sizes, in pixels; the first that runs is written.
SIZES = (224, 256, 320, 416, 512, 640, 192, 128, 96, 64, 32)
Size = tuple[int, int]  # height, width


def closed_inputs(
    model_files: ModelFiles, graph: Graph, preferred: Sequence[Size] = ()
) -> Sequence[TemplateInput]:
    """The model's inputs; `preferred` sizes are tried before SIZES.

    Raises GraphError if none runs, and for an input of unknown rank, of text or of size zero.
    """
    from npumake.cli.template import TemplateInput
    from npumake.graph import dtype, open_dimensions
    from npumake.recognition.facts import input_grid

    dims: dict[str, tuple[Any, ...]] = {}
    for value in graph.inputs:
        if value.shape is None:
            hint = "write a project.yaml by hand, with its shape"
            raise GraphError(f"input `{value.name}` has no shape", model_files.model.path, hint)
        if dtype(value) == "object":
            raise GraphError(
                f"input `{value.name}` holds strings, not numbers", model_files.model.path
            )
        if sizes := [d for d in value.shape if isinstance(d, int) and d < 1]:
            raise GraphError(
                f"input `{value.name}` has a size of {sizes[0]}", model_files.model.path
            )
        dims[str(value.name)] = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    shapes = _fitting(model_files, dims, preferred)
    return [
        TemplateInput(
            str(v.name),
            dtype(v),
            shapes[str(v.name)],
            open_dimensions(v),
            grid=input_grid(v),
        )
        for v in graph.inputs
    ]


def closed_graph(model_files: ModelFiles, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The model as the first stage imports it, without preprocessing. Raises PipelineError."""
    from npumake.project.sections import FilePath, Input, ModelSection
    from npumake.stages.original_float import original_float

    inputs = {name: Input(shape=shape) for name, shape in shapes.items()}
    sources = {"model.path": (model_files.model,), "model.weights": model_files.weights}
    return original_float(ModelSection(FilePath(model_files.model.name)), inputs, sources)


def random_sample(
    dtype: str, shape: tuple[int, ...], seed: int, reach: tuple[float, float] | None = None
) -> Any:
    """A seeded random sample: floats around 0, or evenly over `reach`; integers 0 or 1."""
    import numpy as np

    random = np.random.default_rng(seed)
    if np.issubdtype(np.dtype(dtype), np.floating):
        if reach is not None:
            return random.uniform(*reach, shape).astype(dtype)
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def _fitting(
    model_files: ModelFiles, dims: Mapping[str, tuple[Any, ...]], preferred: Sequence[Size]
) -> Mapping[str, tuple[int, ...]]:
    """A shape for each input. A leading open dimension, and others of its name, are a batch of 1.
    Other open dimensions are one of the sizes; the middle of three may be a batch, as in the state
    of a recurrent layer.
    """
    batch = {sizes[0] for sizes in dims.values() if sizes and isinstance(sizes[0], str)}
    is_open = any(not isinstance(dim, int) for sizes in dims.values() for dim in sizes)
    refusals: list[GraphError] = []
    for size, middle in _sizes(preferred) if is_open else [((1, 1), 1)]:
        shapes = {name: _closed(sizes, batch, size, middle) for name, sizes in dims.items()}
        try:
            _try(model_files, shapes)
        except GraphError as error:
            refusals.append(error)
        else:
            return shapes
    raise refusals[0]


def _sizes(preferred: Sequence[Size]) -> Iterator[tuple[Size, int]]:
    for height, width in (*preferred, *((side, side) for side in SIZES)):
        for middle in (width, 1):
            yield (height, width), middle


def _closed(dims: Sequence[Any], batch: Container[Any], size: Size, middle: int) -> tuple[int, ...]:
    height, width = size
    rows = 1 if len(dims) == 4 and dims[3] in (1, 3) else 2  # the axis of the height
    sizes = [1, middle if len(dims) == 3 else height, *repeat(width, len(dims))]
    if len(dims) == 4:
        sizes[rows], sizes[rows + 1] = height, width
    pairs = zip(dims, sizes, strict=False)
    return tuple(dim if isinstance(dim, int) else 1 if dim in batch else n for dim, n in pairs)


def _try(model_files: ModelFiles, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Runs the model as the first stage would import it. Raises GraphError."""
    from npumake.engine.ort import OrtSession
    from npumake.graph import dtype

    graph = closed_graph(model_files, shapes)
    feeds = {str(v.name): random_sample(dtype(v), shapes[str(v.name)], 0) for v in graph.inputs}
    OrtSession(graph.to_bytes()).run(None, feeds)
