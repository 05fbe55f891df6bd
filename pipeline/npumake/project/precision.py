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
    "skip",
    "standard",
]


@dataclass(frozen=True)
class Modelwise:
    """The search of `method: modelwise`, which hb_mapper and hb_compile call `default`. Values that
    the chip does not support are skipped."""

    methods: Annotated[
        tuple[Literal["kl", "max", "moving_average"], ...], Doc("The methods, in this order.")
    ] = ("max", "kl")
    percentiles: Annotated[
        tuple[float, ...], Doc("Of max: the shares of values kept; 1.0 keeps all.", 0.5, 1.0)
    ] = (0.99995, 1.0)
    per_channel: Annotated[tuple[bool, ...], Doc("As `calibration.per_channel`.")] = (
        False,
        True,
    )
    asymmetric: Annotated[
        tuple[bool, ...], Doc("Whether grids have zero points; as the chip has it where empty.")
    ] = (False, True)
    similarity: Annotated[
        float, Doc("The first with outputs of such a cosine is taken; above 1 all are tried.")
    ] = 0.995
    metric: Annotated[
        Literal["cosine-similarity", "mse", "mae", "mre", "sqnr", "chebyshev"],
        Doc("What the best is chosen by where none is similar enough."),
    ] = "cosine-similarity"


@dataclass(frozen=True)
class Calibration:
    method: Annotated[
        Method,
        Doc(
            "How ranges are chosen from the statistics. default: the best for the model, by trial; "
            "modelwise: the search that hb_mapper and hb_compile call default; "
            "mix: the best for every tensor; skip: of noise, for timing; load: the model carries "
            "its scales."
        ),
    ] = "kl"
    percentile: Annotated[
        float,
        Doc("Of max_percentile: the share of values kept.", minimum=0.5, maximum=1.0),
    ] = 0.99995
    bins: Annotated[
        Literal[512, 1024, 2048, 4096, 8192, 16384],
        Doc("Of kl: the bins from zero to the largest magnitude, or half as many."),
    ] = 2048
    momentum: Annotated[
        float,
        Doc("Of moving_average: the share of the average that a sample leaves.", 0.0, 1.0),
    ] = 0.9
    recipe: Annotated[
        Literal["plain", "best"],
        Doc(
            "best: every method is tried on samples held out, whatever `method` says, then every "
            "switch that `quantization` leaves open, and kept where it helps."
        ),
    ] = "plain"
    symmetric: Annotated[
        bool | None, Doc("Whether zero is the middle of every grid; by default as the chip has it.")
    ] = None
    per_channel: Annotated[
        bool,
        Doc(
            "Every channel of a feature map has the whole grid, where what makes it and what "
            "reads it can make up for that; for the chips whose tools offer it."
        ),
    ] = False
    modelwise: Annotated[Modelwise, Doc("What `method: modelwise` tries.")] = field(
        default_factory=Modelwise
    )


Type = Literal["int8", "uint8", "int16", "float16", "float32"]
Types = Mapping[str, Type]


@dataclass(frozen=True)
class LayerTypes:
    """The types of one node's inputs and output; they override `types`."""

    input: Annotated[Type | None, Doc("Of all it reads.")] = None
    inputs: Annotated[
        tuple[Type | None, ...], Doc("Of what it reads, in its order; null leaves one as it is.")
    ] = ()
    output: Annotated[Type | None, Doc("Of what it makes.")] = None


@dataclass(frozen=True)
class Quantization:
    """Types of tensors, placement of nodes, and accuracy corrections.

    A correction is on if true. An open one may be turned on by a search: any of them by
    `recipe: best`; round_weights, bias_correction and, for ties alone, widen_answers by
    `method: default`.

    A node is named by itself or by an output tensor, as trained or optimized. `x...` means all that
    follows x, `a, b -> c` all between, `Add(*)` an operator, `*` everything."""

    types: Annotated[
        Types | tuple[Types, ...],
        Doc(
            "Types by node; INPUTS are the model's, BOXES the nodes that make a detector's boxes "
            "of distances, MASKS what gives the mask coefficients it hands out. int8 and uint8 are "
            "the target's 8 bits. In one mapping a name beats `x...`, that `Add(*)`, that MASKS, "
            "BOXES, INPUTS and `*`; in a list the later beats the earlier."
        ),
    ] = field(default_factory=dict)
    layers: Annotated[
        Mapping[str, LayerTypes], Doc("Types of single inputs and outputs, by node.")
    ] = field(default_factory=dict)
    outputs: Annotated[
        Literal["int8", "int16", "float32"] | None,
        Doc("The model answers in codes of this type; float32, the default, in real numbers."),
    ] = None
    cpu: Annotated[tuple[str, ...], Doc("Nodes that run on the CPU, in float.")] = ()
    npu: Annotated[
        tuple[str, ...],
        Doc("Nodes for the chip: those it runs only where asked, such as Softmax; it beats `cpu`."),
    ] = ()
    optional: Annotated[
        tuple[str, ...],
        Doc("Of these names the model may have none: then a note, and no error."),
    ] = ()
    scheme: Annotated[
        Literal["asymmetric_affine", "dynamic_fixed_point", "perchannel_symmetric_affine"] | None,
        Doc("The grids of activations and weights; the target's own by default."),
    ] = None
    mode: Annotated[
        Literal["standard", "full"],
        Doc("full: what only moves values is quantized next to floats too."),
    ] = "standard"
    equalize: Annotated[
        bool | None, Doc("Channels between two layers are brought to one size; the answers stay.")
    ] = None
    migrate: Annotated[
        bool | None,
        Doc("Channels too large for their tensor's scale are made up for by the weights."),
    ] = None
    widen: Annotated[
        bool | None,
        Doc("int16 for nodes around tensors whose channels are of very different sizes."),
    ] = None
    widen_answers: Annotated[
        bool | None, Doc("int16 for the last layers and what is computed behind them.")
    ] = None
    widen_sensitive: Annotated[
        bool | None,
        Doc(
            "int16 for the few tensors that make most of the noise, for half of all "
            "operations at most unless too much would be lost."
        ),
    ] = None
    clip_weights: Annotated[
        bool | None, Doc("Weights saturate where the mean square error is the smaller for it.")
    ] = None
    round_weights: Annotated[
        Literal["nearest", "adaptive"] | None,
        Doc("adaptive: weights make up for those rounded before them, in other layers too."),
    ] = None
    bias_correction: Annotated[
        bool | None,
        Doc("Biases take up the mean shift that the integers bring to what a layer makes."),
    ] = None
