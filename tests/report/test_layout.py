"""Where nodes are drawn: below what they read from, beside each other, never on top."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from npumake.report.layout import drawing, laid_out
from trained import network

edges = st.integers(1, 24).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))).map(
            lambda pairs: sorted((a, b) for a, b in pairs if a < b)
        ),
    )
)


@given(edges)
def test_a_node_lies_below_all_it_reads_and_beside_its_layer(drawn) -> None:  # type: ignore[no-untyped-def]
    count, given_edges = drawn
    found = laid_out(count, given_edges)
    assert [edge[:2] for edge in found.edges] == given_edges
    for start, end, bends in found.edges:
        layers = [found.places[start][1], *(layer for _, layer in bends), found.places[end][1]]
        assert layers == sorted(set(layers))
    for layer in {layer for _, layer in found.places}:
        row = sorted(x for x, other in found.places if other == layer)
        assert all(b - a >= 0.75 for a, b in pairwise(row))


def test_a_chain_is_a_straight_line() -> None:
    assert laid_out(3, [(0, 1), (1, 2)]).places == ((0.0, 0), (0.0, 1), (0.0, 2))


def test_an_edge_past_a_node_bends_around_it() -> None:
    found = laid_out(3, [(0, 1), (1, 2), (0, 2)])
    ((x, layer),) = found.edges[2][2]
    assert layer == 1
    assert abs(x - found.places[1][0]) >= 0.75


def test_a_graph_is_drawn_the_same_every_time() -> None:
    assert drawing(network("mobilenetv3")) == drawing(network("mobilenetv3").copy())
