"""Target: what a chip can hold, as the quantizer and the compiler need to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from npumake.project.doc import Doc
from npumake.targets.cost import Cost
from npumake.targets.form import Form
from npumake.targets.spelled_functions import SPELLED_OUT, with_spelled_out

# One computation by two names, of which a list may say int16 of the second alone.
INT16_AS = {"GlobalAveragePool": "ReduceMean"}

# Of the compiled file, by what makes it.
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
    symmetric: Annotated[bool, Doc("Whether zero is the middle of every grid unless asked.")]
    asymmetric: Annotated[
        bool, Doc("Of a chip of symmetric grids: whether its tool has those with a zero point too.")
    ] = False
    power_of_two: Annotated[bool, Doc("Whether every scale is a power of two.")] = False
    per_channel: Annotated[
        bool, Doc("Whether the vendor's tool calibrates a feature map channel by channel.")
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
    asymmetric: Annotated[bool, Doc("Whether the grid of a weight has a zero point.")] = False


@dataclass(frozen=True)
class Accepts:
    """The ONNX files that the vendor's own tool reads. Here every model is upgraded."""

    opset: Annotated[tuple[int, ...], Doc("The opset, or the lowest and the highest.", minimum=1)]
    ir_version: Annotated[int | None, Doc("The highest version of the format.", minimum=3)] = None
    outputs: Annotated[int | None, Doc("The most outputs of a model.", minimum=1)] = None
    rank: Annotated[int | None, Doc("Dimensions of every input, the first of them 1.")] = None
    needs: Annotated[str | None, Doc("An operator of which the unit must run one.")] = None


@dataclass(frozen=True)
class Limit:
    """A condition under which the unit runs an operator. Beyond it a node is the CPU's."""

    holds: Annotated[
        str, Doc("In the facts of pipeline/npumake/targets/facts.py: `kernel_h <= 7`.")
    ]
    change: Annotated[str, Doc("What to change in a model that is beyond it.")]
    operators: Annotated[tuple[str, ...], Doc("Empty: all of them.")] = ()


@dataclass(frozen=True)
class Remark:
    """What is documented of operators, and cannot be told from a node."""

    operators: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Converter:
    """The block that the converter for this chip adds to EdgeFirst's metadata."""

    block: Annotated[str, Doc("Its key.")]
    target: Annotated[str, Doc("What it calls the chip.")]
    qmode: Annotated[int, Doc("Its number of the grids: 9 is scale * (q - zero point).")]


@dataclass(frozen=True)
class Vela:
    """What Arm's compiler is told of an Ethos-U and of the chip around it (its Arm/vela.ini)."""

    accelerator: Annotated[str, Doc("Its name with the multipliers: ethos-u65-256.")]
    system_config: Annotated[str, Doc("Clock, and latency and bandwidth of the memories.")]
    memory_mode: Annotated[str, Doc("Which memory holds weights, and which activations.")]


@dataclass(frozen=True)
class Iree:
    """The processor that IREE compiles for, in LLVM's words."""

    triple: Annotated[str, Doc("Architecture and system: aarch64-unknown-linux-gnu.")]
    cpu: Annotated[str, Doc("The processor: cortex-a55.")]


@dataclass(frozen=True)
class VendorTool:
    """The vendor's own compiler, which `compile.vendor_tool` has run."""

    command: Annotated[str, Doc("Its name on PATH.")]
    version: Annotated[str, Doc("The argument with which it tells its version.")]
    makes: Annotated[str, Doc("The suffix of what it makes.")]


@dataclass(frozen=True)
class CompiledBound:
    """How far the compiled file may be from the integer engine, both fed the same samples."""

    codes: Annotated[int, Doc("Of an output on a grid: so many of its steps.", minimum=0)] = 0
    relative: Annotated[
        float,
        Doc("Of an output computed in float: this share of its largest magnitude.", minimum=0),
    ] = 1e-5


@dataclass(frozen=True)
class Target:
    name: str
    vendor: str
    unit: Annotated[str, Doc("What the vendor calls the accelerator in its tables.")]
    activations: Activations
    weights: WeightGrid
    rounding: Annotated[
        Literal["half_even", "half_up", "half_away", "twice"],
        Doc("How an accumulator is rounded onto the output grid; twice: as TensorFlow Lite."),
    ]
    border_rounding: Annotated[
        Literal["half_even", "half_away"], Doc("How a real number becomes a code, on the CPU.")
    ] = "half_even"
    backend: Annotated[
        Literal["hybrid", "tflite", "vela", "iree", "onnx", "openvino", "qnn", "rknn", "torq"],
        Doc("What makes the compiled file: our own integers, or a compiler."),
    ] = "hybrid"
    backend_options: Annotated[
        Mapping[str, str], Doc("What a compiler in an interpreter of its own is told of the chip.")
    ] = field(default_factory=dict)
    compiled_bound: Annotated[
        CompiledBound, Doc("What a build holds each output of the compiled file to.")
    ] = CompiledBound()
    march: Annotated[str | None, Doc("The vendor's name of the architecture.")] = None
    tool: Annotated[VendorTool | None, Doc("None: there is no command that one could call.")] = None
    accepts: Annotated[
        Accepts | None, Doc("What is documented of the vendor's own tool, to be told.")
    ] = None
    operators: Annotated[
        tuple[str, ...] | None,
        Doc("ONNX operators the unit runs. None: not documented, all with an integer kernel."),
    ] = None
    on_request: Annotated[
        tuple[str, ...], Doc("ONNX operators the unit runs only where `quantization.npu` asks.")
    ] = ()
    refused: Annotated[
        tuple[str, ...], Doc("ONNX operators that neither the unit nor the chip's CPU runs.")
    ] = ()
    limits: tuple[Limit, ...] = ()
    remarks: tuple[Remark, ...] = ()
    int16: Annotated[
        tuple[str, ...] | None,
        Doc("ONNX operators that take and give int16. None: not documented, all."),
    ] = None
    int16_power_of_two: Annotated[bool, Doc("Whether scales of int16 are powers of two.")] = False
    weights_as_activations: Annotated[
        bool, Doc("Whether weights have the type of the activations they meet, int16 too.")
    ] = False
    same_types: Annotated[
        bool,
        Doc(
            "Whether what an operator reads and makes has one type, those that multiply and "
            "accumulate aside; int16 then spreads to the neighbours."
        ),
    ] = False
    one_type: Annotated[
        bool,
        Doc(
            "Whether what an operator reads and makes has one type, those that multiply and "
            "accumulate too; its neighbours keep their own."
        ),
    ] = False
    gemm_as_conv: Annotated[
        bool, Doc("Whether a Gemm is computed as a Conv over an image of one pixel.")
    ] = False
    sums: Annotated[
        tuple[str, ...],
        Doc(
            "ONNX operators that hand out their int32 sums where only the CPU reads them and the "
            "project does not ask for less."
        ),
    ] = ()
    moved_sums: Annotated[tuple[str, ...], Doc("Operators that it runs on sums of a Conv.")] = ()
    form: Annotated[Form | None, Doc("How the vendor's tool divides a model.")] = None
    float16: Annotated[bool, Doc("Whether a node may compute in float16.")] = False
    listings: Annotated[
        bool, Doc("Whether a build leaves what SyNAP's converter tells beside a model.")
    ] = False
    converter: Annotated[
        Converter | None, Doc("Of a chip that EdgeFirst's converters compile for.")
    ] = None

    cost: Annotated[Cost, Doc("What an estimate of the latency is made from.")] = field(
        default_factory=Cost
    )
    vela: Annotated[Vela | None, Doc("Of `backend: vela`.")] = None
    iree: Annotated[Iree | None, Doc("Of `backend: iree`.")] = None

    @property
    def suffix(self) -> str:
        """Of the compiled file, where it is made here."""
        return SUFFIXES[self.backend]

    def makes(self, with_tool: bool) -> str:
        """The suffix of the compiled file, made by the vendor's own tool or here."""
        return self.tool.makes if with_tool and self.tool else self.suffix

    @property
    def wide(self) -> Activations:
        """The grid of int16 activations."""
        return Activations("int16", symmetric=True, power_of_two=self.int16_power_of_two)

    @property
    def runnable(self) -> tuple[str, ...] | None:
        """`operators` and `on_request`, and each function that a model may also spell out."""
        if self.operators is None:
            return None
        return with_spelled_out(*self.operators, *self.on_request)

    def runs(self, op_type: str) -> bool:
        """Whether the unit is known, or not known not, to run the operator by itself."""
        return self.operators is None or op_type in with_spelled_out(*self.operators)

    def runs_when_asked(self, op_type: str) -> bool:
        """The same of an operator that the project asks it to run."""
        runnable = self.runnable
        return runnable is None or op_type in runnable

    def limits_of(self, op_type: str) -> tuple[Limit, ...]:
        """Those of the operator; of a function that it runs as its parts, those of the parts."""
        own = self.operators is None or op_type in (*self.operators, *self.on_request)
        names = {op_type, *(() if own else SPELLED_OUT.get(op_type, ()))}
        return tuple(
            limit
            for limit in self.limits
            if not limit.operators or not names.isdisjoint(limit.operators)
        )

    def documents(self, op_type: str) -> bool:
        """Whether something is known of the operator; else it counts as one the unit runs."""
        documented = [limit.operators for limit in self.limits]
        documented += [remark.operators for remark in self.remarks]
        return self.operators is not None or any(op_type in operators for operators in documented)

    def takes_int16(self, op_type: str) -> bool:
        """Whether the unit is known, or not known not, to run the operator on int16."""
        if self.int16 is None:
            return True
        return op_type in with_spelled_out(*self.int16) or self.int16_as(op_type) is not None

    def int16_as(self, op_type: str) -> str | None:
        """The other operator as which the unit runs it on int16."""
        other, int16 = INT16_AS.get(op_type), self.int16
        return other if int16 is not None and op_type not in int16 and other in int16 else None
