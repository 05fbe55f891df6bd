"""What a vendor's own tool takes of an ONNX file is told, and keeps nothing from being built."""

import pytest

from npumake.graph import parse_text
from npumake.targets.onnx_limits import beyond_documented, mark_format
from npumake.targets.reader import read_target


@pytest.mark.parametrize(
    ("chip", "opset", "ir_version", "told"),
    [
        ("rdk-x5", 11, 7, []),
        ("rdk-x5", 12, 7, ["opset 12, documented for rdk-x5: 10..11; D-Robotics's"]),
        (
            "rdk-x3",
            9,
            8,
            ["opset 9", "IR version 8, documented for rdk-x3: at most 7"],
        ),
        ("nash-e", 19, 9, []),
        ("nash-e", 20, 10, ["documented for nash-e: 10..19", "at most 9"]),
        ("ara240", 17, 20, ["opset 17, documented for ara240: 13; EdgeFirst's own tool"]),
        ("sl1680", 99, 99, []),
    ],
)
def test_a_file_beyond_the_documented_limits(chip, opset, ir_version, told):
    graph = parse_text("agraph (float[1,2,8,8] x) => (float[1,2,8,8] y) { y = Relu(x) }")
    assert beyond_documented(graph, read_target(chip)) == ()  # it was no ONNX file
    mark_format(graph, opset, ir_version)
    found = beyond_documented(graph, read_target(chip))
    assert len(found) == len(told)
    assert all(words in line for words, line in zip(told, found, strict=True))
