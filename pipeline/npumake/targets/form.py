"""Form: how a vendor's own tool divides a model into operators, and names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc


@dataclass(frozen=True)
class Form:
    """The form in published logs of the tool. If a document differs, the logs count."""

    log: Annotated[str, Doc("Versions of the tool whose logs show this form.")]
    silu: Annotated[bool, Doc("Whether x * Sigmoid(x) is one table, named after the Mul.")] = False
    joined: Annotated[
        bool,
        Doc("Whether the inputs of a Concat without other readers use the grid of the Concat."),
    ] = False
    leaving: Annotated[
        Literal["int8", "int16"], Doc("Type of outputs of the unit, except int32 sums.")
    ] = "int8"
    types: Annotated[
        Mapping[str, str],
        Doc("Type of a row by ONNX operator, on the unit. Default: the ONNX operator."),
    ] = field(default_factory=dict)
    by_constant: Annotated[
        Mapping[str, str], Doc("The same, for an operator with a constant operand.")
    ] = field(default_factory=dict)
    table: Annotated[str, Doc("Type of a function computed by a lookup table.")] = ""
    wide_table: Annotated[str, Doc("The same, for int16.")] = ""
    unit_conv: Annotated[
        str, Doc("Prefix of an Add that runs as a Conv; empty: it stays an Add.")
    ] = ""
    gemm_reshape: Annotated[
        str, Doc("Suffix of the CPU's Reshape behind a Gemm; empty: there is none.")
    ] = ""
    sigmoid: Annotated[
        tuple[float, ...],
        Doc("Input and output thresholds of an int8 Sigmoid; empty: from the samples.", 0.0),
    ] = ()
    caffe_reshape: Annotated[str, Doc("The same behind an InnerProduct of Caffe.")] = ""
    vector_gemm: Annotated[
        str,
        Doc("The suffix of a vector times a constant, which is a Gemm; empty: it is a MatMul."),
    ] = ""
    mixed: Annotated[
        tuple[str, ...], Doc("Operators with int8 inputs and int16 outputs at the end of the unit.")
    ] = ()
    requantize: Annotated[str, Doc("The suffix of a row that moves a tensor to another grid.")] = ""
    chroma: Annotated[
        tuple[float, ...],
        Doc("What U adds to blue, and V to red, of a picture fed as YUV; empty: as in BT.601."),
    ] = ()
