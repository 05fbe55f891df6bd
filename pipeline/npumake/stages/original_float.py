"""original_float: the trained model with its preprocessing in front.

    model file → cut at `outputs` → static shapes, inputs with a `value` constant, working opset
               → a detector's head cut by its hints → border nodes removed
               → per input the nodes from the fed form to the trained form

The chip reads x (of a picture: code - 128); the model was trained on (code - mean) * scale, in its
own colors and layout. `npumake.borders.preprocess` has the mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping

from npumake.borders.begin import begin_at
from npumake.borders.cut import end_at, remove_node, remove_types
from npumake.borders.frozen_inputs import freeze_inputs, refuse_unnamed
from npumake.borders.images import mark_batch, mark_images, mark_trained
from npumake.borders.preprocess import put_in_front
from npumake.custom.operators import NO_OPERATORS, Operators, require
from npumake.custom.shapes import with_shapes
from npumake.detection.head import with_head
from npumake.detection.metadata import Metadata, read_metadata
from npumake.detection.notes import carried, metadata_of
from npumake.detection.trial import refuse_undecodable
from npumake.errors import GraphError, ProjectError, Route, did_you_mean
from npumake.frontends import CHANNELS_LAST, RESHAPED, WITH_WEIGHTS, read_model, suffix_of
from npumake.frontends.model_file import Ends
from npumake.graph import Graph, Value, open_dimensions, shape, upgraded
from npumake.graph.domains import refuse_strange_inputs
from npumake.graph.undeployable import refuse_undeployable
from npumake.passes.fold_constants import fold_constants
from npumake.project.feeding import feeding
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.names import entries, strangers
from npumake.project.sections import Input, ModelSection
from npumake.targets.onnx_limits import mark_caffe, mark_format


def original_float(
    model: ModelSection,
    inputs: Mapping[str, Input],
    sources: SourceFiles,
    operators: Operators = NO_OPERATORS,
) -> Graph:
    (file,) = sources["model.path"]
    try:
        return _prepared(file, model, inputs, sources, operators)
    except GraphError as error:
        error.where = error.where or file.name
        raise


def _prepared(
    file: SourceFile,
    model: ModelSection,
    inputs: Mapping[str, Input],
    sources: SourceFiles,
    operators: Operators,
) -> Graph:
    graph = _read(file, sources, model, inputs)
    values = {str(value.name): value for value in graph.inputs}
    for name in strangers(inputs, values):
        hint = did_you_mean(name, values)
        raise ProjectError(f"the model has no input `{name}`", Route(f"inputs.{name}"), hint)
    refuse_unnamed(inputs, len(values))
    inputs = {name: inputs[key] for name, key in entries(inputs, values).items()}
    if suffix_of(file.name) in RESHAPED:
        graph = _reshaped(file, sources, graph, model, inputs)
    versions = (graph.opset, graph.model.ir_version)
    if model.outputs:
        end_at(graph, model.outputs)
    _refuse_missing_outputs(graph, model)
    require(graph, operators)
    facts, metadata = carried(graph), _metadata(graph, sources)
    graph = _with_fixed_shapes(graph, inputs)
    freeze_inputs(graph, inputs)
    graph = with_shapes(upgraded(graph), operators)
    graph.set_metadata(facts)
    if metadata is not None:
        graph = _with_known_anchors(graph, operators)
    graph = with_head(graph, model, metadata)
    if remove_types(graph, model.remove_types):
        graph = graph.with_shapes()
    for index, node in enumerate(model.remove_nodes):
        remove_node(graph, node, Route(f"model.remove_nodes.{index}"))
    if metadata is not None and metadata.outputs:
        _refuse_undecodable(graph, inputs)
    refuse_undeployable(graph)
    _mark_format(graph, suffix_of(file.name), versions)
    mark_batch(graph, _batch(graph, inputs))
    _put_preprocessing_in_front(graph, inputs)
    return graph.with_shapes()


def _refuse_undecodable(graph: Graph, inputs: Mapping[str, Input]) -> None:
    metadata, first = metadata_of(graph), graph.inputs[0]
    dims = shape(first)
    if metadata is not None and len(dims) == 4 and dims[0] == 1:  # one picture is decoded
        is_last = inputs.get(str(first.name), Input()).layout == "NHWC"
        refuse_undecodable(graph, metadata, dims[1:3] if is_last else dims[2:4])


def _with_known_anchors(graph: Graph, operators: Operators) -> Graph:
    """Folds the anchors. A head exported for any image size computes them from the shapes of its
    maps, which are fixed by now."""
    while any(open_dimensions(value) for value in graph.values().values()):
        if not fold_constants(graph):
            break
        graph = with_shapes(graph, operators)
    return graph


def _put_preprocessing_in_front(graph: Graph, inputs: Mapping[str, Input]) -> None:
    pictures: list[str] = []
    trained: dict[str, tuple[int, ...] | None] = {}
    for value in graph.inputs:
        name = str(value.name)
        section = inputs.get(name, Input())
        feed = feeding(name, section, shape(value))
        planes = put_in_front(graph, value, feed, section.mean, section.scale)
        if feed.offset:
            pictures += [str(plane.name) for plane in planes]
        trained[name] = None if feed.is_as_trained else feed.shape
    mark_images(graph, pictures)
    mark_trained(graph, trained)


def _mark_format(graph: Graph, suffix: str, versions: tuple[int, int]) -> None:
    if suffix == ".onnx":
        mark_format(graph, *versions)
    elif suffix in RESHAPED:
        mark_caffe(graph)


def _refuse_missing_outputs(graph: Graph, model: ModelSection) -> None:
    if (model.output_count or 0) > len(graph.outputs):
        names = ", ".join(str(value.name) for value in graph.outputs)
        message = f"{model.output_count} outputs for a model of {len(graph.outputs)}: {names}"
        raise ProjectError(message, Route("model.output_count"), "one entry for each output")


def _read(
    file: SourceFile,
    sources: SourceFiles,
    model: ModelSection,
    inputs: Mapping[str, Input],
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Graph:
    """The model of `model.path` from `model.inputs` on, with `model.weights` if the format has
    them apart."""
    weights = sources.get("model.weights", ())
    if weights and suffix_of(file.name) not in WITH_WEIGHTS:
        hint = f"remove the key; separate weights are for {', '.join(sorted(WITH_WEIGHTS))}"
        raise ProjectError(f"`{file.name}` holds its own weights", Route("model.weights"), hint)
    ends = Ends(model.inputs, model.outputs)
    graph = read_model(file.read(), file.name, weights, shapes, ends)
    declared = {
        name: section.shape for name, section in inputs.items() if section.shape is not None
    }
    begin_at(graph, model.inputs, declared, suffix_of(file.name) in CHANNELS_LAST)
    return graph


def _reshaped(
    file: SourceFile,
    sources: SourceFiles,
    graph: Graph,
    model: ModelSection,
    inputs: Mapping[str, Input],
) -> Graph:
    """The network for the requested input shapes, if they differ from its own.

    Raises GraphError at the first of them when the network or its weights do not fit.
    """
    own = {str(value.name): shape(value) for value in graph.inputs}
    requested = {
        name: section.shape
        for name, section in inputs.items()
        if section.shape not in (None, own[name])
    }
    if not requested:
        return graph
    try:
        dims = {name: dims for name, dims in requested.items() if dims}
        return _read(file, sources, model, inputs, dims)
    except GraphError as error:
        name, dimensions = next(iter(requested.items()))
        message = f"shape {list(dimensions or ())} does not fit the network: {error.what}"
        hint = f"`{file.name}` itself has {list(own[name])}"
        raise GraphError(message, Route(f"inputs.{name}.shape"), hint) from error


def _metadata(graph: Graph, sources: SourceFiles) -> Metadata | None:
    """The file of `model.metadata`, else the model's own metadata."""
    for file in sources.get("model.metadata", ()):
        return read_metadata(file.read(), file.name)
    return metadata_of(graph)


def _with_fixed_shapes(graph: Graph, inputs: Mapping[str, Input]) -> Graph:
    refuse_strange_inputs(graph.inputs)
    for value in graph.inputs:
        name = str(value.name)
        fixed = inputs.get(name, Input()).shape
        if fixed is not None:
            _check_shape(value, fixed)
            graph.set_input_shape(value, fixed)
        elif opened := open_dimensions(value):
            raise GraphError(
                f"input `{name}` leaves a dimension open: {opened}",
                Route(f"inputs.{name}"),
                f"fix it under `inputs:`, for example  {name}: {{shape: [1, 3, 224, 224]}}",
            )
    return graph


def _check_shape(value: Value, requested: tuple[int, ...]) -> None:
    declared = () if value.shape is None else tuple(value.shape)
    fits = len(declared) == len(requested) and all(
        not isinstance(dim, int) or dim == size
        for dim, size in zip(declared, requested, strict=True)
    )
    if value.shape is not None and not fits:
        raise ProjectError(
            f"shape {list(requested)} does not fit input `{value.name}`, which the model declares "
            f"as [{', '.join(str(dim) for dim in declared)}]",
            Route(f"inputs.{value.name}.shape"),
        )


def _batch(graph: Graph, inputs: Mapping[str, Input]) -> int:
    """Images per run of the compiled file. Raises ProjectError when the model has more inputs."""
    for name, section in inputs.items():
        if section.batch > 1 and len(graph.inputs) > 1:
            raise ProjectError(
                f"a batch of {section.batch} for a model of {len(graph.inputs)} inputs",
                Route(f"inputs.{name}.batch"),
                "only a model with one input takes several images per run",
            )
    return max((section.batch for section in inputs.values()), default=1)
