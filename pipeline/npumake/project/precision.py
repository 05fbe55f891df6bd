"""The sections `calibration:` and `quantization:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc

Method = Literal[
    "default",
    "kl",
    "load",
    "max",
    "max_percentile",
    "mix",
    "modelwise",
    "moving_average",
    "mse",
    "output_mix",
    "skip",
    "standard",
]


@dataclass(frozen=True)
class Modelwise:
    """The search of `method: modelwise`, which hb_mapper and hb_compile call `default`. Values that
    the chip does not support are skipped."""

    methods: Annotated[
        tuple[Literal["kl", "max", "moving_average"], ...], Doc("Candidate methods, in order.")
    ] = ("max", "kl")
    percentiles: Annotated[
        tuple[float, ...], Doc("Candidate percentiles of max; 1.0 keeps all values.", 0.5, 1.0)
    ] = (0.99995, 1.0)
    per_channel: Annotated[tuple[bool, ...], Doc("Candidates of `calibration.per_channel`.")] = (
        False,
        True,
    )
    asymmetric: Annotated[
        tuple[bool, ...], Doc("Candidates of asymmetric grids. Empty: the default of the chip.")
    ] = (False, True)
    similarity: Annotated[
        float, Doc("Stops at the first candidate with this output cosine; above 1 all are tried.")
    ] = 0.995
    metric: Annotated[
        Literal["cosine-similarity", "mse", "mae", "mre", "sqnr", "chebyshev"],
        Doc("Metric to select by if no candidate reaches `similarity`."),
    ] = "cosine-similarity"


@dataclass(frozen=True)
class Calibration:
    method: Annotated[
        Method,
        Doc(
            "Calibration method. default: the best method for the model, by trial; "
            "modelwise: the search that hb_mapper and hb_compile call default; mix: the "
            "best method per tensor; output_mix: likewise, by the model's outputs; skip: random "
            "samples, for timing; load: the model's own scales."
        ),
    ] = "kl"
    percentile: Annotated[
        float,
        Doc("max_percentile: share of the values to keep.", minimum=0.5, maximum=1.0),
    ] = 0.99995
    bins: Annotated[
        Literal[512, 1024, 2048, 4096, 8192, 16384],
        Doc("kl: number of histogram bins from zero to the largest magnitude, or half as many."),
    ] = 2048
    momentum: Annotated[
        float,
        Doc("moving_average: weight of the previous average.", 0.0, 1.0),
    ] = 0.9
    recipe: Annotated[
        Literal["plain", "best"],
        Doc(
            "best: tries all methods on held-out samples, regardless of `method`, then all "
            "switches that `quantization` leaves unset, and keeps those that help."
        ),
    ] = "plain"
    symmetric: Annotated[bool | None, Doc("Zero points are 0. Default: that of the chip.")] = None
    per_channel: Annotated[
        bool,
        Doc(
            "Scales each channel of a feature map to the whole grid, if the layers around "
            "it can compensate; for chips whose tools support it."
        ),
    ] = False
    modelwise: Annotated[Modelwise, Doc("Candidates of `method: modelwise`.")] = field(
        default_factory=Modelwise
    )


Type = Literal["int8", "uint8", "int16", "float16", "float32"]
Types = Mapping[str, Type]


@dataclass(frozen=True)
class LayerTypes:
    """The types of one node's inputs and output; they override `types`."""

    input: Annotated[Type | None, Doc("Type of all inputs.")] = None
    inputs: Annotated[
        tuple[Type | None, ...], Doc("Types of the inputs, in order; null keeps the default.")
    ] = ()
    output: Annotated[Type | None, Doc("Type of the output.")] = None


@dataclass(frozen=True)
class Quantization:
    """Types of tensors, placement of nodes, and accuracy corrections.

    A correction is on if true. An open one may be turned on by a search: any of them by
    `recipe: best`; even_depthwise, round_weights, bias_correction and, only for ties, widen_answers
    by `method: default`.

    A node is named by itself or by an output tensor, as trained or optimized. `x...` means all that
    follows x, `a, b -> c` all between, `Add(*)` an operator, `*` everything."""

    types: Annotated[
        Types | tuple[Types, ...],
        Doc(
            "Types by node. INPUTS: the model inputs; BOXES: the nodes that compute a "
            "detector's boxes from distances; MASKS: those that compute its mask "
            "coefficients. int8 and uint8 both mean the target's 8-bit type. In one mapping "
            "a name overrides `x...`, that `Add(*)`, that MASKS, BOXES, INPUTS and `*`; in "
            "a list a later entry overrides an earlier one."
        ),
    ] = field(default_factory=dict)
    layers: Annotated[
        Mapping[str, LayerTypes], Doc("Types of single inputs and outputs, by node.")
    ] = field(default_factory=dict)
    outputs: Annotated[
        Literal["int8", "int16", "float32"] | None,
        Doc(
            "Type of the model outputs: quantized values, or real numbers for float32. "
            "Default: float32."
        ),
    ] = None
    cpu: Annotated[tuple[str, ...], Doc("Nodes to run on the CPU, in float.")] = ()
    npu: Annotated[
        tuple[str, ...],
        Doc(
            "Nodes to run on the NPU, such as a Softmax that it runs only on request; "
            "overrides `cpu`."
        ),
    ] = ()
    optional: Annotated[
        tuple[str, ...],
        Doc("Names that may be absent from the model: a note replaces the error."),
    ] = ()
    scheme: Annotated[
        Literal["asymmetric_affine", "dynamic_fixed_point", "perchannel_symmetric_affine"] | None,
        Doc("Quantization scheme of activations and weights. Default: that of the target."),
    ] = None
    mode: Annotated[
        Literal["standard", "full"],
        Doc("full: also quantizes data movement next to float nodes."),
    ] = "standard"
    equalize: Annotated[
        bool | None,
        Doc(
            "Cross-layer equalization: equalizes channel ranges between two layers; float "
            "outputs stay equal."
        ),
    ] = None
    even_depthwise: Annotated[
        bool | None,
        Doc(
            "Evens out the channels of tensors that only depthwise layers read; the weights lose "
            "nothing."
        ),
    ] = None
    migrate: Annotated[
        bool | None,
        Doc("SmoothQuant: moves large channels of a tensor into the weights."),
    ] = None
    widen: Annotated[
        bool | None,
        Doc("int16 for nodes around tensors with very different channel ranges."),
    ] = None
    widen_answers: Annotated[
        bool | None, Doc("int16 for the output layers and the nodes behind them.")
    ] = None
    widen_sensitive: Annotated[
        bool | None,
        Doc("int16 for the few tensors that cause most of the noise, within `most_int16`."),
    ] = None
    most_int16: Annotated[
        float | None,
        Doc(
            "Limit of the search: the largest share of multiply-accumulates that may read int16. "
            "0: 8 bits alone; types and layers of the project count, and always apply. Default: "
            "0.1 for `recipe: best`, 0.5 for `widen_sensitive: true`.",
            0.0,
            1.0,
        ),
    ] = None
    clip_weights: Annotated[
        bool | None, Doc("Clips weights if that reduces the mean squared error.")
    ] = None
    round_weights: Annotated[
        Literal["nearest", "adaptive"] | None,
        Doc("adaptive: rounds weights to compensate for earlier rounding, also across layers."),
    ] = None
    bias_correction: Annotated[
        bool | None,
        Doc("Bias correction: biases compensate for the mean shift of a layer's quantized output."),
    ] = None
