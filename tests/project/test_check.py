"""More than one mistake at once."""

import pytest

from npumake.project.check import mistakes
from npumake.project.document import parse_document
from npumake.project.schema import schema_of
from npumake.project.sections import Sections


def found(text: str) -> list[str]:
    document = parse_document(text.encode(), "p.yaml")
    return [str(mistake) for mistake in mistakes(document, schema_of(Sections))]


def test_mistakes_come_in_the_order_of_the_text_and_missing_keys_last():
    text = (
        "targets: 1\ncalibration: {method: min, percentile: 2}\nmodel: {}\ndata: {a: {files: s}}\n"
    )
    assert [mistake.split(" (")[0] for mistake in found(text)] == [
        "`targets` must be a list of names or mappings, not `1`",
        "`calibration.method` cannot be `min`",
        "`calibration.percentile` must be at most 1, not 2",
        "missing key `model.path`",
    ]


def test_an_empty_file_lacks_each_required_section_once():
    assert [mistake.split(" (")[0] for mistake in found("")] == [
        "missing key `model`",
        "missing key `targets`",
    ]


def test_two_unknown_keys_are_two_mistakes():
    assert [mistake.split(";")[0] for mistake in found("a: 1\nb: 2\n")] == [
        "unknown key `a` (p.yaml:1:1)",
        "unknown key `b` (p.yaml:2:1)",
    ]


@pytest.mark.parametrize("shape", ["1x3x64x64", "1,3,64,64", "'1, 3, 64, 64'", "1 3 64 64"])
def test_the_hint_for_a_shape_of_another_tool_is_one_when_done_as_told(shape: str):
    project = "model: {path: m.onnx}\ntargets: [rdk-x5]\ninputs:\n  a:\n    shape: SHAPE\n"
    (message,) = found(project.replace("SHAPE", shape))
    hint = message.partition("write ")[2].rstrip(")")
    assert found(project.replace("SHAPE", hint)) == []
