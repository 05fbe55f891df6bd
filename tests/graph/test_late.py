"""onnx-ir brings sympy along, and nothing here computes with symbolic dimensions."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("from npumake.stages.stage import every_stage; every_stage()", False),
        (
            "import npumake.graph, onnx_ir; assert str(onnx_ir.SymbolicDim('n') + 1) == 'n + 1'",
            True,
        ),
    ],
)
def test_sympy_is_loaded_when_it_is_used_and_not_before(code: str, loaded: bool) -> None:
    asked = f"{code}; import sys; print('sympy.core' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout == f"{loaded}\n"
