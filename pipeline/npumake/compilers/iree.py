"""CPUs through IREE: .tflite → TOSA with plain integers → native code in a .vmfb.

The code targets one processor. Compilation is single-threaded, since threads change bytes from run
to run. Names and grids of inputs and outputs are stored beside the code as JSON: IREE drops them.
"""

from __future__ import annotations

from collections.abc import Sequence

from npumake import digest
from npumake.compilers.process import run_python
from npumake.digest import Json
from npumake.frontends.tflite.schema import TFLiteTensor, read_network
from npumake.lifetime.temporaries import temporary_folder
from npumake.targets.target import Target

TOSA = "tosa-converter-for-tflite"
IREE = "iree-base-compiler"
INTERFACE = "interface.json"  # member of the appended ZIP
# A Transpose after an ArgMax would become an operation that IREE's own verifier refuses
# ("'linalg.yield' op expected number of yield values (2)", 3.13).
KEEP_TRANSPOSES = "--iree-global-opt-propagate-transposes=false"
CONVERT = (
    "import tosa_converter_for_tflite as tosa;"
    "tosa.tflite_flatbuffer_to_tosa_mlir('model.tflite', 'model.mlirbc')"
)

# LiteRT scales the sums of a FULLY_CONNECTED by a real number and rounds once. The converter rounds
# twice, as for a convolution: one in thirty elements is off by one code. In TOSA such a layer is a
# conv2d with reshaped weights.
ROUND_ONCE = """
from iree.compiler import ir

def visit(op):
    op = op.operation
    if op.name == "tosa.conv2d" and op.operands[1].owner.name == "tosa.reshape":
        for use in op.results[0].uses:
            reader = use.owner.operation
            if reader.name == "tosa.rescale":
                reader.attributes["rounding_mode"] = once
    return ir.WalkResult.ADVANCE

with ir.Context():
    once = ir.Attribute.parse("#tosa.rounding_mode<SINGLE_ROUND>")
    with open("model.mlirbc", "rb") as file:
        module = ir.Module.parse(file.read())
    module.operation.walk(visit)
    with open("model.mlirbc", "wb") as file:
        module.operation.write_bytecode(file)
"""


def with_iree(model: bytes, target: Target) -> tuple[bytes, dict[str, bytes]]:
    """The native code, and INTERFACE. Raises StageError if a tool is not installed or
    fails."""
    processor = target.iree
    assert processor is not None
    with temporary_folder() as folder:
        network = read_network(model)
        (folder / "model.mlirbc").write_bytes(tosa(model, IREE))
        if any(operator.type == "FULLY_CONNECTED" for operator in network.operators):
            run_python(["-c", ROUND_ONCE], folder, (IREE,))
        arguments = ["-m", "iree.compiler.tools.scripts.iree_compile", "model.mlirbc"]
        arguments += ["--iree-input-type=tosa", "--iree-hal-target-backends=llvm-cpu"]
        arguments += [f"--iree-llvmcpu-target-triple={processor.triple}"]
        arguments += [f"--iree-llvmcpu-target-cpu={processor.cpu}", "--mlir-disable-threading"]
        run_python([*arguments, KEEP_TRANSPOSES, "-o", "model.vmfb"], folder, (IREE,))
        code = (folder / "model.vmfb").read_bytes()
    interface = {"inputs": _ports(network.inputs), "outputs": _ports(network.outputs)}
    return code, {INTERFACE: digest.canonical(interface)}


def tosa(model: bytes, needs: str = TOSA) -> bytes:
    """A .tflite as TOSA bytecode. Raises StageError if a tool is not installed or fails."""
    with temporary_folder() as folder:
        (folder / "model.tflite").write_bytes(model)
        run_python(["-c", CONVERT], folder, (TOSA, needs))
        return (folder / "model.mlirbc").read_bytes()


def _ports(tensors: Sequence[TFLiteTensor]) -> list[Json]:
    return [
        {
            "name": tensor.name,
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "scale": None if tensor.grid is None else float(tensor.grid.scale),
            "zero_point": 0 if tensor.grid is None else int(tensor.grid.zero_point),
        }
        for tensor in tensors
    ]
