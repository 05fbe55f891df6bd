"""Target: the facts of a chip for the quantizer and the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc
from npumake.targets.cost import Cost
from npumake.targets.form import Form
from npumake.targets.spelled_functions import with_spelled_out

# One computation with two names; a list may have int16 for the second only.
OTHERS = "others"  # the operators that `kernels` does not list
INT16_AS = {"GlobalAveragePool": "ReduceMean"}

# The suffix of the compiled file, by backend.
SUFFIXES = {
    "hybrid": ".hybrid",
    "tflite": ".tflite",
    "vela": ".tflite",
    "iree": ".vmfb",
    "onnx": ".onnx",
    "openvino": ".zip",
    "qnn": ".onnx",
    "rknn": ".rknn",
    "torq": ".vmfb",
}


@dataclass(frozen=True)
class Activations:
    """The per-tensor grid of activations. Symmetric: zero point 0, threshold at the top code."""

    dtype: Literal["int8", "uint8", "int16"]
    symmetric: Annotated[bool, Doc("Whether zero points are 0 by default.")]
    asymmetric: Annotated[
        bool, Doc("Whether the tool of a chip with symmetric grids also supports zero points.")
    ] = False
    power_of_two: Annotated[bool, Doc("Whether every scale is a power of two.")] = False
    per_channel: Annotated[
        bool, Doc("Whether the vendor's tool calibrates feature maps per channel.")
    ] = False

    @property
    def may_be_asymmetric(self) -> bool:
        return self.asymmetric or not self.symmetric


@dataclass(frozen=True)
class WeightGrid:
    """The grid of weights: zero point 0, unless it is asymmetric, which only a tensor is."""

    dtype: Literal["int8", "uint8", "int16"]
    per_channel: bool
    power_of_two: Annotated[bool, Doc("Whether every scale is a power of two.")] = False
    asymmetric: Annotated[bool, Doc("Whether weights have a zero point.")] = False


@dataclass(frozen=True)
class Accepts:
    """The ONNX files that the vendor's own tool reads. Here every model is upgraded."""

    opset: Annotated[
        tuple[int, ...], Doc("The opset, or the lowest and the highest one.", minimum=1)
    ]
    ir_version: Annotated[int | None, Doc("Highest IR version.", minimum=3)] = None
    outputs: Annotated[int | None, Doc("Maximum number of outputs.", minimum=1)] = None
    rank: Annotated[int | None, Doc("Rank of every input; its first dimension is 1.")] = None
    needs: Annotated[str | None, Doc("An operator that must occur on the unit.")] = None


@dataclass(frozen=True)
class Limit:
    """A condition under which the unit runs an operator. Beyond it a node runs on the CPU."""

    holds: Annotated[
        str,
        Doc(
            "Condition on the facts of pipeline/npumake/targets/facts.py, such as `kernel_h <= 7`."
        ),
    ]
    change: Annotated[str, Doc("Advice for a model beyond the limit.")]
    operators: Annotated[tuple[str, ...], Doc("ONNX operators; empty: all.")] = ()


@dataclass(frozen=True)
class Remark:
    """A documented condition that a node does not reveal."""

    operators: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Converter:
    """The block that the converter for this chip adds to EdgeFirst's metadata."""

    block: Annotated[str, Doc("Key of the block.")]
    target: Annotated[str, Doc("Name of the chip.")]
    qmode: Annotated[int, Doc("Number of the quantization mode: 9 is scale * (q - zero point).")]


@dataclass(frozen=True)
class Vela:
    """The configuration of Arm's compiler for an Ethos-U and its system (Arm/vela.ini)."""

    accelerator: Annotated[str, Doc("Name with the number of multipliers, such as ethos-u65-256.")]
    system_config: Annotated[str, Doc("Name of the clock and memory configuration.")]
    memory_mode: Annotated[
        str, Doc("Name of the mode that assigns weights and activations to memories.")
    ]


@dataclass(frozen=True)
class Iree:
    """The processor that IREE compiles for, in LLVM's terms."""

    triple: Annotated[str, Doc("Architecture and system, such as aarch64-unknown-linux-gnu.")]
    cpu: Annotated[str, Doc("Processor, such as cortex-a55.")]


@dataclass(frozen=True)
class VendorTool:
    """The vendor's own compiler, which `compile.vendor_tool` runs."""

    command: Annotated[str, Doc("Name of the command on PATH.")]
    version: Annotated[str, Doc("Argument that prints the version.")]
    makes: Annotated[str, Doc("Suffix of the compiled file.")]


@dataclass(frozen=True)
class Target:
    name: str
    vendor: str
    unit: Annotated[str, Doc("The vendor's name of the accelerator, as in its tables.")]
    activations: Activations
    weights: WeightGrid
    rounding: Annotated[
        Literal["half_even", "half_up", "half_away", "twice"],
        Doc("Rounding of an accumulator to the output grid; twice: as in TensorFlow Lite."),
    ]
    border_rounding: Annotated[
        Literal["half_even", "half_away"],
        Doc("Rounding of real numbers to quantized values, on the CPU."),
    ] = "half_even"
    backend: Annotated[
        Literal["hybrid", "tflite", "vela", "iree", "onnx", "openvino", "qnn", "rknn", "torq"],
        Doc("Backend of the compiled file: hybrid is our own format, all others are compilers."),
    ] = "hybrid"
    backend_options: Annotated[
        Mapping[str, str], Doc("Options of a compiler that runs in an interpreter of its own.")
    ] = field(default_factory=dict)
    kernels: Annotated[
        Mapping[str, Literal["exact", "float", "one_code"]],
        Doc(
            "How the integer kernels of the compiled file round, by ONNX operator; `others` are "
            "those not listed. exact (the default): as ours. float: they multiply by a float, so "
            "beside a tie a code may be the other one. one_code: a code may be off by one."
        ),
    ] = field(default_factory=dict)
    march: Annotated[str | None, Doc("The vendor's name of the architecture.")] = None
    tool: Annotated[VendorTool | None, Doc("The vendor's command. None: there is none.")] = None
    accepts: Annotated[Accepts | None, Doc("Documented limits of the vendor's tool.")] = None
    operators: Annotated[
        tuple[str, ...] | None,
        Doc(
            "ONNX operators that the unit runs. None: undocumented, so all with an integer kernel."
        ),
    ] = None
    on_request: Annotated[
        tuple[str, ...],
        Doc("ONNX operators that the unit runs only if `quantization.npu` lists them."),
    ] = ()
    refused: Annotated[
        tuple[str, ...], Doc("ONNX operators that run neither on the unit nor on the chip's CPU.")
    ] = ()
    limits: tuple[Limit, ...] = ()
    remarks: tuple[Remark, ...] = ()
    int16: Annotated[
        tuple[str, ...] | None,
        Doc("ONNX operators with int16 inputs and outputs. None: undocumented, so all."),
    ] = None
    int16_power_of_two: Annotated[bool, Doc("Whether int16 scales are powers of two.")] = False
    weights_as_activations: Annotated[
        bool, Doc("Whether weights have the type of the node's activations, including int16.")
    ] = False
    same_types: Annotated[
        bool,
        Doc(
            "Whether inputs and outputs of an operator share one type, except for those "
            "that multiply and accumulate; int16 then spreads to neighbors."
        ),
    ] = False
    one_type: Annotated[
        bool,
        Doc(
            "Whether inputs and outputs of every operator share one type; its neighbors "
            "keep their own."
        ),
    ] = False
    gemm_as_conv: Annotated[
        bool, Doc("Whether a Gemm runs as a Conv over an image of one pixel.")
    ] = False
    sums: Annotated[
        tuple[str, ...],
        Doc(
            "ONNX operators that output int32 sums, if only the CPU reads them and the "
            "project requests no lower type."
        ),
    ] = ()
    moved_sums: Annotated[
        tuple[str, ...], Doc("Operators that run on the int32 sums of a Conv.")
    ] = ()
    form: Annotated[Form | None, Doc("Form of the model after the vendor's tool.")] = None
    float16: Annotated[bool, Doc("Whether a node may run in float16.")] = False
    listings: Annotated[bool, Doc("Whether a build writes the listings of SyNAP's converter.")] = (
        False
    )
    converter: Annotated[
        Converter | None, Doc("The metadata block of EdgeFirst's converter for the chip.")
    ] = None

    cost: Annotated[Cost, Doc("Figures for the latency estimate.")] = field(default_factory=Cost)
    vela: Annotated[Vela | None, Doc("Options of `backend: vela`.")] = None
    iree: Annotated[Iree | None, Doc("Options of `backend: iree`.")] = None

    @property
    def suffix(self) -> str:
        """The suffix of npumake's own compiled file."""
        return SUFFIXES[self.backend]

    def makes(self, with_tool: bool) -> str:
        """The suffix of the compiled file, from the vendor's own tool or npumake."""
        return self.tool.makes if with_tool and self.tool else self.suffix

    @property
    def wide(self) -> Activations:
        """The grid of int16 activations."""
        return Activations("int16", symmetric=True, power_of_two=self.int16_power_of_two)

    @property
    def runnable(self) -> tuple[str, ...] | None:
        """`operators` and `on_request`, and each function that a model may also have as parts."""
        if self.operators is None:
            return None
        return with_spelled_out(*self.operators, *self.on_request)

    def runs(self, op_type: str) -> bool:
        """Whether the unit runs the operator by itself; undocumented operators count as running."""
        return self.operators is None or op_type in with_spelled_out(*self.operators)

    def runs_when_asked(self, op_type: str) -> bool:
        """The same for an operator that the project requests."""
        runnable = self.runnable
        return runnable is None or op_type in runnable

    def lists(self, op_type: str) -> bool:
        """Whether the operator itself is listed; undocumented operators count as listed."""
        return self.operators is None or op_type in (*self.operators, *self.on_request)

    @property
    def reads_the_model(self) -> bool:
        """Whether the vendor's own tool makes the chip's file, from the model's own operators."""
        return self.backend == "hybrid"

    def limits_of(self, op_type: str) -> tuple[Limit, ...]:
        return tuple(
            limit for limit in self.limits if not limit.operators or op_type in limit.operators
        )

    def kernel(self, op_type: str) -> Literal["exact", "float", "one_code"]:
        """How the compiled file's integer kernel of the operator rounds."""
        return self.kernels.get(op_type, self.kernels.get(OTHERS, "exact"))

    def documents(self, op_type: str) -> bool:
        """Whether the operator is documented; otherwise it counts as one the unit runs."""
        documented = [limit.operators for limit in self.limits]
        documented += [remark.operators for remark in self.remarks]
        return self.operators is not None or any(op_type in operators for operators in documented)

    def takes_int16(self, op_type: str) -> bool:
        """Whether the unit runs the operator on int16; undocumented operators count as running."""
        if self.int16 is None:
            return True
        return op_type in with_spelled_out(*self.int16) or self.int16_as(op_type) is not None

    def int16_as(self, op_type: str) -> str | None:
        """The other operator as which the unit runs it on int16."""
        other, int16 = INT16_AS.get(op_type), self.int16
        return other if int16 is not None and op_type not in int16 and other in int16 else None
