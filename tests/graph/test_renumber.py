"""Numbers in names count by use: two runs of a converter give the same bytes."""

from npumake.graph import origin, parse_text, renumber

ONE = """agraph (float[2] x) => (float[2] y__3) <float[2] c__9 = {1, 2}, float[2] c__2 = {3, 4}> {
    a__7__5 = Add(x, c__9)  b = Mul(a__7__5, c__2)  y__3 = Add(b, c__9) }"""
OTHER = """agraph (float[2] x) => (float[2] y__3) <float[2] c__0 = {3, 4}, float[2] c__1 = {1, 2}> {
    a__4__1 = Add(x, c__1)  b = Mul(a__4__1, c__0)  y__3 = Add(b, c__1) }"""


def test_names_and_constants_count_by_use_and_the_interface_stays():
    one, other = parse_text(ONE), parse_text(OTHER)
    renumber(one)
    renumber(other)
    assert list(one.values()) == ["x", "c__0", "c__1", "a__0", "b", "y__3"]
    assert [origin(node) for node in one.nodes()] == [("a__1",), ("b",), ("y__0",)]
    assert one.to_bytes() == other.to_bytes()
