"""Form: how a vendor's own tool divides a model into operators, and what it calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc


@dataclass(frozen=True)
class Form:
    """What published logs of the tool show. Where they and a document differ, the logs count."""

    log: Annotated[str, Doc("The versions of the tool whose logs show it.")]
    silu: Annotated[bool, Doc("Whether x * Sigmoid(x) is one table, named after the Mul.")] = False
    joined: Annotated[
        bool, Doc("Whether what only a Concat reads is written on the grid of the Concat.")
    ] = False
    leaving: Annotated[
        Literal["int8", "int16"], Doc("The type of what leaves the unit and is no sum.")
    ] = "int8"
    types: Annotated[
        Mapping[str, str], Doc("The type of a row by ONNX operator, on the unit; else ONNX's own.")
    ] = field(default_factory=dict)
    by_constant: Annotated[
        Mapping[str, str], Doc("The same of an operator with a constant operand.")
    ] = field(default_factory=dict)
    table: Annotated[str, Doc("The type of a function that is read from a table.")] = ""
    wide_table: Annotated[str, Doc("The same of a function of int16.")] = ""
    unit_conv: Annotated[
        str, Doc("The prefix of an Add that is computed as a Conv; empty: it is an Add.")
    ] = ""
    gemm_reshape: Annotated[
        str, Doc("The suffix of the CPU's Reshape behind a Gemm; empty: there is none.")
    ] = ""
    sigmoid: Annotated[
        tuple[float, ...],
        Doc("Thresholds of what an int8 Sigmoid reads and makes; empty: from the samples.", 0.0),
    ] = ()
    caffe_reshape: Annotated[str, Doc("The same behind an InnerProduct of Caffe.")] = ""
    vector_gemm: Annotated[
        str,
        Doc("The suffix of a vector times a constant, which is a Gemm; empty: it is a MatMul."),
    ] = ""
    mixed: Annotated[
        tuple[str, ...], Doc("Operators that read int8 and make int16 where that leaves the unit.")
    ] = ()
    requantize: Annotated[str, Doc("The suffix of a row that moves a tensor to another grid.")] = ""
    chroma: Annotated[
        tuple[float, ...],
        Doc("What U adds to blue, and V to red, of a picture fed as YUV; empty: as in BT.601."),
    ] = ()
