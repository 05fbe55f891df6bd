"""Translates a Caffe network to a Graph, layer by layer in file order.

Nodes have the names of layers, and tensors those of blobs. A blob that layers rewrite in place
becomes several tensors. The last keeps the blob's name, and earlier ones are `<blob>_before_<the
rewriting layer>`. If the blob is a network input, the input keeps the name, and the rewritten ones
are `<blob>_after_<layer>`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from npumake.errors import GraphError, did_you_mean
from npumake.frontends.caffe import (
    arrangement,
    elementwise,
    recurrent,
    regions,
    windows,
)
from npumake.frontends.caffe.layer import CaffeLayer, layers_of
from npumake.frontends.caffe.messages import Message, parse_net
from npumake.frontends.caffe.site import MAX_AXES, MAX_COUNT, LayerSite
from npumake.frontends.caffe.weights import TrainedBlobs
from npumake.graph import Beside, Building, Graph, TensorSpec, Value

Converter = Callable[[LayerSite], Value | tuple[Value, ...]]

LAYERS: Mapping[str, Converter] = {
    "AbsVal": elementwise.unary,
    "ArgMax": arrangement.arg_max,
    "BNLL": elementwise.unary,
    "BatchNorm": elementwise.batch_norm,
    "Bias": elementwise.bias,
    "CReLU": elementwise.concatenated_relu,
    "Concat": arrangement.concat,
    "Convolution": windows.convolution,
    "Crop": arrangement.crop,
    "Deconvolution": windows.deconvolution,
    "Dropout": elementwise.identity,
    "ELU": elementwise.elu,
    "Eltwise": elementwise.eltwise,
    "Exp": elementwise.exponential,
    "Flatten": arrangement.flatten,
    "InnerProduct": arrangement.inner_product,
    "LRN": windows.local_response,
    "LSTM": recurrent.lstm,
    "LeakyRelu": elementwise.relu,
    "Log": elementwise.logarithm,
    "MVN": elementwise.mean_variance,
    "MatMul": arrangement.matrix_product,
    "MaxUnpool": windows.upsampling,
    "Normalize": elementwise.normalize,
    "PReLU": elementwise.parametric_relu,
    "PSROIPooling": regions.position_sensitive_pooling,
    "PassThrough": arrangement.pass_through,
    "Permute": arrangement.permute,
    "Pooling": windows.pooling,
    "Power": elementwise.power,
    "RReLU": elementwise.random_relu,
    "ROIPooling": regions.roi_pooling,
    "ReLU": elementwise.relu,
    "ReLU6": elementwise.relu6,
    "Reduction": elementwise.reduction,
    "Reshape": arrangement.reshape,
    "SPP": windows.spatial_pyramid,
    "Scale": elementwise.scale,
    "Sigmoid": elementwise.unary,
    "Silence": elementwise.silence,
    "Slice": arrangement.slice_,
    "Softmax": elementwise.softmax,
    "Split": elementwise.identity,
    "TanH": elementwise.unary,
    "Threshold": elementwise.threshold,
    "Upsample": windows.upsampling,
}

MAX_NAMED = 20  # unknown layers listed in one message


Version = tuple[str, int]  # a blob, and how many layers wrote it before


class LayerInNetwork(NamedTuple):
    """A layer with the blob versions it reads and writes; `names` are the tensor names of the
    latter."""

    layer: CaffeLayer
    reads: tuple[Version, ...]
    makes: tuple[Version, ...]
    names: tuple[str, ...]


def read_caffe(
    data: bytes,
    name: str,
    weights: Sequence[Beside],
    shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> Graph:
    """The graph of the .prototxt `name` with the weights of a .caffemodel. `shapes` replace input
    shapes, as when Caffe reshapes a network.

    Raises GraphError for a damaged file, unknown layer types (all in one error), a blob that no
    layer or several layers output, shapes that do not fit, and weights that are missing or belong
    to another network.
    """
    net = parse_net(data, name)
    layers = layers_of(net, name)
    if not layers:
        raise GraphError("not a Caffe network: it has no layers", name)
    _refuse_unknown(layers, name)
    trained = _trained(weights, name)
    inputs = _reshaped(_inputs(net, layers, name), shapes, name)
    rest = [layer for layer in layers if layer.type != "Input"]
    steps, outputs = _versions(rest, [tensor.name for tensor in inputs], name)
    if not outputs:
        raise GraphError("the network computes nothing", name)
    blobs = {top for layer in rest for top in layer.tops} - {tensor.name for tensor in inputs}
    building = Building(inputs, net.name or "caffe", blobs)
    tensors = {(str(value.name), 0): value for value in building.inputs}
    for step in steps:
        site = LayerSite(
            building, step.layer, tuple(tensors[read] for read in step.reads), trained, name
        )
        for blob, value, called in zip(step.makes, _layer_outputs(site), step.names, strict=True):
            node = step.layer.name or called
            building.rename(value, called, node, reserved=called == blob[0])
            tensors[blob] = value
    results = (tensors[version] for version in outputs)
    return building.finished({str(value.name): value for value in results})


def _trained(weights: Sequence[Beside], name: str) -> TrainedBlobs:
    if len(weights) != 1:
        message = f"a Caffe network has one file of weights; the project names {len(weights)}"
        raise GraphError(message, name, "write  weights: net.caffemodel  under `model:`")
    (file,) = weights
    return TrainedBlobs(file.part(0, file.size), file.name)


def _layer_outputs(site: LayerSite) -> tuple[Value, ...]:
    """One tensor per top of the layer."""
    result = LAYERS[site.layer.type](site)
    values = result if isinstance(result, tuple) else (result,)
    if len(values) != site.tops:
        raise site.error(f"has {len(values)} results for {site.tops} tops")
    return values


def _refuse_unknown(layers: list[CaffeLayer], file: str) -> None:
    unknown = [x for x in layers if x.type not in LAYERS and x.type != "Input"]
    if not unknown:
        return
    listing = [f"name={layer.name} type={layer.type}" for layer in unknown[:MAX_NAMED]]
    suffix = f" and {len(unknown) - MAX_NAMED} more" if len(unknown) > MAX_NAMED else ""
    raise GraphError(
        f"not supported: layer {', layer '.join(listing)}{suffix}",
        file,
        "remove layers that only training needs (data, loss, accuracy) and give the network an "
        "Input; replace others by supported ones: " + ", ".join(sorted(LAYERS)),
    )


def _inputs(net: Message, layers: list[CaffeLayer], file: str) -> list[TensorSpec]:
    """The network's inputs: `input:` of the net, then its Input layers."""
    if net.input_shape:
        shapes = [tuple(shape.dim) for shape in net.input_shape]
    else:
        shapes = [tuple(net.input_dim[i : i + 4]) for i in range(0, len(net.input_dim), 4)]
    specs = _paired(tuple(net.input), shapes, file)
    for layer in layers:
        if layer.type == "Input":
            declared = [tuple(shape.dim) for shape in layer.message.input_param.shape]
            specs += _paired(
                layer.tops, declared * len(layer.tops) if len(declared) == 1 else declared, file
            )
    counted = Counter(tensor.name for tensor in specs)
    for name, count in counted.items():
        if count > 1:
            raise GraphError(f"two inputs of the network are called `{name}`", file)
    return specs


def _reshaped(
    inputs: list[TensorSpec], shapes: Mapping[str, tuple[int, ...]], file: str
) -> list[TensorSpec]:
    names = tuple(tensor.name for tensor in inputs)
    return _paired(names, [shapes.get(t.name, t.shape) for t in inputs], file)


def _paired(names: tuple[str, ...], shapes: list[tuple[int, ...]], file: str) -> list[TensorSpec]:
    if len(names) != len(shapes):
        message = f"the network has {len(names)} inputs and {len(shapes)} shapes for them"
        raise GraphError(message, file, "give each an `input_param { shape { dim: … } }`")
    for name, dims in zip(names, shapes, strict=True):
        fits = len(dims) <= MAX_AXES and min(dims, default=1) >= 1 and prod(dims) <= MAX_COUNT
        if not fits:
            raise GraphError(f"input `{name}` has shape {list(dims)}", file)
    return [TensorSpec(name, dims) for name, dims in zip(names, shapes, strict=True)]


def _versions(
    layers: list[CaffeLayer], inputs: list[str], file: str
) -> tuple[list[LayerInNetwork], tuple[Version, ...]]:
    """The layers over blob versions, and the unread versions: the outputs."""
    writers = _writers(layers, inputs, file)
    latest = dict.fromkeys(inputs, 0)
    unread: dict[str, None] = {}
    steps = []
    for layer in layers:
        _refuse_unmade(layer, latest, file)
        reads = tuple((blob, latest[blob]) for blob in layer.bottoms)
        for blob in layer.bottoms:
            unread.pop(blob, None)
        for blob in layer.tops:
            latest[blob] = latest.get(blob, -1) + 1
            unread[blob] = None
        makes = tuple((blob, latest[blob]) for blob in layer.tops)
        names = tuple(_name(blob, version, writers[blob]) for blob, version in makes)
        steps.append(LayerInNetwork(layer, reads, makes, names))
    return steps, tuple((blob, latest[blob]) for blob in unread)


def _writers(layers: list[CaffeLayer], inputs: list[str], file: str) -> dict[str, list[str | None]]:
    """The layers that write each blob, in order; the first writer of an input is empty."""
    writers: dict[str, list[str | None]] = {name: [None] for name in inputs}
    for layer in layers:
        for top in layer.tops:
            if top in writers and top not in layer.bottoms:
                raise GraphError(f"blob `{top}` is written twice, again by `{layer.name}`", file)
            writers.setdefault(top, []).append(layer.name)
        if len(set(layer.tops)) < len(layer.tops):
            raise GraphError(f"layer `{layer.name}` writes one blob twice", file)
    return writers


def _refuse_unmade(layer: CaffeLayer, versions: Mapping[str, int], file: str) -> None:
    for bottom in layer.bottoms:
        if bottom not in versions:
            message = f"layer `{layer.name}` reads blob `{bottom}`, which no layer before it writes"
            raise GraphError(message, file, did_you_mean(bottom, versions) if versions else "")


def _name(blob: str, version: int, writers: list[str | None]) -> str:
    """The name of a version of a blob, after the layers that write it."""
    if writers[0] is None:
        return f"{blob}_after_{writers[version]}"
    if version == len(writers) - 1:
        return blob
    return f"{blob}_before_{writers[version + 1]}"
