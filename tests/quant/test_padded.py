"""The range of what is padded holds the constant."""

from __future__ import annotations

import pytest

from npumake.graph import parse_text
from npumake.quant.calibration.padded_ranges import padded_ranges

PAD = """<ir_version: 9, opset_import: ["" : 20]> a (float[1,2] x) => (float[1,4] y)
    <int64[4] p = {{0,1,0,1}}, float c = {{{}}}> {{ n = Neg(x) f = Flatten(n) y = Pad(f, p, c) }}"""


@pytest.mark.parametrize(
    ("constant", "wanted"),
    [
        (-5.0, {"n": (-5.0, 2.0)}),
        (3.0, {"n": (-1.0, 3.0)}),
        (0.5, {"n": (-1.0, 2.0)}),
        (0.0, {}),
        (-1e9, {}),  # masks, and is float
    ],
)
def test_a_constant_widens_the_tensor_behind_what_only_moves(constant, wanted):
    graph = parse_text(PAD.format(constant)).with_shapes()
    assert padded_ranges(graph, {"x": (-9.0, 9.0), "n": (-1.0, 2.0)}) == wanted
