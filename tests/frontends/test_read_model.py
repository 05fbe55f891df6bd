"""A model file, chosen by its suffix."""

import pytest

from pipeline.errors import GraphError
from pipeline.frontends import FRONTENDS, read_model
from pipeline.graph import parse_text

ONNX = parse_text("agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }").to_bytes()


@pytest.mark.parametrize("name", ["m.onnx", "M.ONNX", "net.v2.onnx"])
def test_a_suffix_chooses_the_reader(name):
    assert [node.op_type for node in read_model(ONNX, name).nodes()] == ["Relu"]


@pytest.mark.parametrize(
    ("name", "shown"), [("m.h5", ".h5"), ("model", "model"), ("m.onnx.zip", ".zip"), ("m.", ".")]
)
def test_a_format_nobody_reads_is_named_with_those_that_are(name, shown):
    with pytest.raises(GraphError) as caught:
        read_model(ONNX, name)
    assert caught.value.what == f"no frontend reads a `{shown}` file"
    assert caught.value.hint == "known: " + ", ".join(sorted(FRONTENDS))


@pytest.mark.parametrize("suffix", FRONTENDS)
@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"not a model\n" * 9, bytes(range(256))])
def test_every_reader_refuses_what_is_no_model(suffix, data):
    with pytest.raises(GraphError) as caught:
        read_model(data, f"m{suffix}")
    assert str(caught.value.where).startswith(f"m{suffix}")  # a text also says in which line
