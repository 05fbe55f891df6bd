"""npumake info: a compiled model's provenance, parameters, inputs and outputs

For an .onnx file it lists inputs and outputs only.

example:
  npumake info out/digits.rdk-x5.hybrid
  npumake info out/original_float.onnx
  npumake info both.hybrid -m a     # one of a packed model

Nodes that `npumake modify` deleted come last, and go to deleted_nodes_info.txt here.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cli import keys
from npumake.errors import GraphError

if TYPE_CHECKING:
    from npumake.bundle.archive import Bundle
    from npumake.bundle.program import Tensor
    from npumake.digest import Json

LISTING = Path("deleted_nodes_info.txt")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a .hybrid or .onnx file, or PROJECT[:TARGET]"
    )
    parser.add_argument("-m", "-n", dest="name", metavar="NAME", help="one of a packed model")
    keys.arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.bundle.opening import opened
    from npumake.cache.publish import replacing
    from npumake.cli.selection import artifact_path
    from npumake.runtime.border import deleted_nodes

    model = artifact_path(arguments.model)
    if model.suffix.lower() == ".onnx":
        print(f"npumake info version {version('npumake')}", *_onnx_lines(model), sep="\n")
        return 0
    bundles = opened(model, arguments.name, keys.keys_of(arguments))
    print(f"npumake info version {version('npumake')}")
    for name, bundle in bundles.items():
        print(*_lines(name, bundle), sep="\n")
    deleted = [node for bundle in bundles.values() for node in deleted_nodes(bundle)]
    if deleted:
        text = "".join(f"{json.dumps(node, sort_keys=True)}\n" for node in deleted)
        try:
            with replacing(LISTING) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except OSError as error:
            raise GraphError(f"cannot write: {error.strerror}", str(LISTING)) from error
    return 0


def _onnx_lines(file: Path) -> Iterator[str]:
    """The inputs and outputs, and of a quantized model the share of int16. Raises
    PipelineError."""
    from npumake.graph import dtype, parse
    from npumake.graph.qdq import is_dequantize
    from npumake.quant.precision.int16_share import int16_share
    from npumake.runtime.picture import read

    graph = parse(read(file), file.name)
    yield f"******** {file.stem} info *********"
    yield "--------- input/output types -"
    for role, values in (("input", graph.inputs), ("output", graph.outputs)):
        for value in values:
            sizes = ", ".join(map(str, value.shape or ()))
            yield f"model {role}: {value.name} {dtype(value)}[{sizes}]"
    if any(map(is_dequantize, graph.nodes())):
        yield f"int16 share: {int16_share(graph):.1%} of multiply-accumulates"


def _grid(name: str, tensor: Tensor, bundle: Bundle) -> str:
    from npumake.bundle.program import SUMS
    from npumake.runtime.border import channel_scales

    if not tensor.scale:
        return ""
    if tensor.dtype == SUMS:
        axis, scales = channel_scales(bundle, name)
        return f" sums, scale of each channel (axis {axis}) [{', '.join(f'{s:g}' for s in scales)}]"
    return f" scale {tensor.scale:g} zero point {tensor.zero_point}"


def _lines(name: str, bundle: Bundle) -> Iterator[str]:
    from npumake.bundle.archive import CALIBRATION, INPUTS
    from npumake.bundle.chain import CHAIN, links_of
    from npumake.bundle.memory import planned
    from npumake.perf.layers import int16_share
    from npumake.runtime.border import DELETED
    from npumake.runtime.stripping import KEPT_NODES

    program = bundle.program
    yield f"******** {name} info *********"
    yield "############# model deps info #############"
    for key, value in sorted(bundle.provenance.items()):
        if key not in (DELETED, KEPT_NODES, INPUTS, CALIBRATION, CHAIN):
            yield f"{key:<24}: {value}"
    for key, value in sorted(links_of(bundle.provenance.get(CHAIN)).items()):
        yield f"{f'made from {key}':<24}: {value}"
    yield "############# model_parameters info #############"
    yield f"{'target':<24}: {bundle.target}"
    yield f"{'batch':<24}: {bundle.batch}"
    for key, value in sorted(bundle.settings.items()):
        yield f"{key:<24}: {value}"
    counted = Counter(step.op for step in program.instructions)
    instructions = ", ".join(f"{kind} {count}" for kind, count in sorted(counted.items()))
    yield f"{'instructions':<24}: {instructions}"
    weights = sum(x.nbytes for step in program.instructions for x in step.constants.values())
    yield f"{'weight bytes':<24}: {weights}"
    yield f"{'int16 share':<24}: {int16_share(program):.1%} of multiply-accumulates"
    yield f"{'arena bytes':<24}: {planned(program).peak}"
    yield from _fed_lines(bundle)
    yield "--------- input/output types -"
    for role, names in (("input", program.inputs), ("output", program.outputs)):
        for tensor_name in names:
            tensor = program.tensors[tensor_name]
            grid = _grid(tensor_name, tensor, bundle)
            yield f"model {role}: {tensor_name} {tensor.dtype}{list(tensor.shape)}{grid}"
    yield from _border(bundle)


def _border(bundle: Bundle) -> Iterator[str]:
    """The nodes removed from the border, and those that had to stay."""
    from npumake.runtime.border import deleted_nodes
    from npumake.runtime.stripping import kept_notes

    if deleted := deleted_nodes(bundle):
        yield "--------- deleted nodes -"
        yield from (f"deleted nodes: {node['name']}" for node in deleted)
    yield from (f"kept: {note}" for note in kept_notes(bundle))


# key of `inputs:` → the vendors' name, and the default
FED_AS = {
    "fed_type": ("input_type_rt", "featuremap"),
    "fed_layout": ("input_layout_rt", "None"),
    "color_range": ("input_space&range", "regular"),
    "type": ("input_type_train", "featuremap"),
    "layout": ("input_layout_train", "NCHW"),
    "shape": ("input_shape", "that of the model"),
    "batch": ("input_batch", 1),
    "mean": ("mean_value", 0.0),
    "scale": ("scale_value", 1.0),
    "offset": ("offset", 0),
}
CALIBRATION_TYPES = {"modelwise": "default"}  # our method → theirs, if the names differ
RANGES = {"full": "regular", "video": "bt601_video"}


def _fed_lines(bundle: Bundle) -> Iterator[str]:
    """The feeding of inputs and the calibration, in the format of hb_model_info."""
    from npumake.bundle.archive import CALIBRATION, INPUTS

    inputs, calibrated = bundle.provenance.get(INPUTS, {}), bundle.provenance.get(CALIBRATION, {})
    if inputs:
        yield "############# input_parameters info #############"
    for name, settings in sorted(inputs.items()):
        called = ", ".join(bundle.program.inputs) if name == "*" else name
        yield f"---------input info : {called} ---------"
        kind = settings.get("type") or "featuremap"
        own = {"fed_type": kind, "offset": 0 if kind == "featuremap" else 128}
        settings = own | {key: value for key, value in settings.items() if value is not None}
        for key, (word, usual) in FED_AS.items():
            yield f"{word:<24}: {_value(settings.get(key, usual))}"
        yield f"{'norm_type':<24}: {_norm_type(settings)}"
        yield f"---------input info : {called} end -------"
    if calibrated:
        yield "############# calibration_parameters info #############"
        method = calibrated.get("method")
        yield f"{'calibration_type':<24}: {CALIBRATION_TYPES.get(method, method)}"
        for key in ("percentile", "per_channel", "symmetric", "recipe"):
            yield f"{key:<24}: {calibrated.get(key)}"


def _value(value: Json) -> str:
    """A list as the vendors print it: `123.68,116.779,103.939,`; a shape with `x`."""
    if isinstance(value, list):
        whole = all(isinstance(number, int) for number in value)
        return "x".join(map(str, value)) if whole else "".join(f"{x:g}," for x in value)
    return RANGES.get(value, str(value)) if isinstance(value, str) else str(value)


def _norm_type(settings: Json) -> str:
    mean, scale = (
        settings.get("mean") not in (None, 0, 0.0),
        settings.get("scale") not in (None, 1, 1.0),
    )
    kinds = {(True, True): "data_mean_and_scale", (True, False): "data_mean"}
    return kinds.get((mean, scale), "data_scale" if scale else "no_preprocess")
