"""The drawing of a build: every node once, implied edges left out, the same bytes each time."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from npumake.cache.store import Record
from npumake.report.build_graph import CLASSES, STYLE, BuildNode, reduced, svg, tree
from npumake.report.page import build_nodes

SVG = "{http://www.w3.org/2000/svg}"


def node(name: str, *inputs: str, status: str = "current", note: str = "") -> BuildNode:
    return BuildNode(f"p:{name}", status, note, (), tuple(f"p:{each}" for each in inputs))


DIAMOND = (node("a"), node("b", "a"), node("c", "a"), node("d", "a", "b", "c"))


def drawn(*nodes: BuildNode) -> list[str]:
    return [row.indent + row.node.short for row in tree(nodes)]


def test_an_edge_that_a_longer_path_implies_is_left_out() -> None:
    assert reduced(DIAMOND)[-1].inputs == ("p:b", "p:c")


def test_a_node_hangs_from_the_last_of_its_inputs_and_names_the_others() -> None:
    assert drawn(*DIAMOND) == ["a", "├ b", "└ c", "  └ d"]
    assert [row.others for row in tree(DIAMOND)][-1] == ("p:b",)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)])
def test_every_node_is_drawn_once_and_behind_its_inputs_in_any_order(order) -> None:
    ordered = reduced([DIAMOND[index] for index in order])
    seen: set[str] = set()
    for each in ordered:
        assert {*each.inputs} <= seen
        seen.add(each.name)
    assert len(ordered) == len(seen) == len(DIAMOND)


def test_a_variant_is_named_and_the_project_is_not() -> None:
    assert BuildNode("p@kl:rdk-x5/recipe", "current", "", (), ()).short == "@kl:rdk-x5/recipe"


def test_a_long_chain_is_drawn_without_recursion() -> None:
    chain = [node("0"), *(node(str(n), str(n - 1)) for n in range(1, 3000))]
    assert len(drawn(*chain)) == len(chain)


@pytest.mark.parametrize("status", CLASSES)
def test_the_svg_is_xml_with_a_box_per_node_and_a_fill_per_state(status: str) -> None:
    root = ElementTree.fromstring(svg({"p": [node("a", status=status), node("b", "a")]}))
    kinds = [rect.get("class") for rect in root.iter(f"{SVG}rect")]
    assert kinds == ["paper", CLASSES[status], CLASSES["current"]]
    assert all(f".builds .{kind}{{fill:#" in STYLE for kind in kinds)
    assert len([*root.iter(f"{SVG}polyline")]) == 1


@pytest.mark.parametrize("hostile", ["<b>&\"'", "\x1b[31m\x00", "é" * 99])
@pytest.mark.parametrize("field", [0, 1])
def test_a_hostile_name_stays_text(hostile: str, field: int) -> None:
    names = (hostile, "note") if field == 0 else ("name", hostile)
    root = ElementTree.fromstring(svg({hostile: [node(names[0], note=names[1])]}))
    assert not [*root.iter("b")]


def test_no_node_leaves_the_picture() -> None:
    many = [node("a"), *(node(f"b{n}", "a") for n in range(9))]
    root = ElementTree.fromstring(svg({"p": many, "q": DIAMOND}))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    outer = [group for group in root.findall(f"{SVG}g")]
    for group in outer:
        x, y = moved(group)
        for box in group.findall(f"{SVG}g"):
            (rect,) = box.findall(f"{SVG}rect")
            left, top = (sum(pair) for pair in zip((x, y), moved(box), strict=True))
            assert left >= 0
            assert left + float(rect.get("width", 0)) <= width
            assert top + float(rect.get("height", 0)) <= height


def moved(element: ElementTree.Element) -> tuple[float, float]:
    x, y = element.get("transform", "").removeprefix("translate(").rstrip(")").split(",")
    return float(x), float(y)


def record(digest: str, **inputs: str) -> Record:
    return Record({"inputs": inputs, "sources": {}, "params": {}}, digest, 1)


def test_an_input_of_a_page_is_that_of_the_same_target_and_variant() -> None:
    provenance = {
        "p:a": record("1"),
        "p:x/b": record("2", a="1"),
        "p:y/b": record("2", a="1"),
        "p:x/c": record("3", b="2"),
        "p:y/c": record("3", b="2"),
        "p@v:x/b": record("4", a="1"),
        "p@v:x/c": record("5", b="4"),
        "p@v:y/c": record("3", b="2"),  # the variant differs behind it only
    }
    inputs = {each.name: each.inputs for each in build_nodes(provenance)}
    assert inputs == {
        "p:a": (),
        "p:x/b": ("p:a",),
        "p:y/b": ("p:a",),
        "p:x/c": ("p:x/b",),
        "p:y/c": ("p:y/b",),
        "p@v:x/b": ("p:a",),
        "p@v:x/c": ("p@v:x/b",),
        "p@v:y/c": ("p:y/b",),
    }
