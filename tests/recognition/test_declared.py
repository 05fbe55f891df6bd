"""What a file says of its normalization: its own arithmetic, its grid, its notes."""

from __future__ import annotations

import pytest

from npumake.graph import parse_text
from npumake.recognition.declared import declared
from npumake.recognition.facts import facts_of
from npumake.recognition.feeds import NORMALIZATIONS, candidates, feed, of_reach
from recognized_models import facts

PICTURE = "agraph (float[1,3,32,32] x) => (float[1,3,32,32] y)"


def stated(body: str, constants: str) -> str | None:
    graph = parse_text(f"{PICTURE} <{constants}> {{ {body} }}")
    given = facts_of("m.onnx", b"", graph, graph)
    assert given is not None
    found = declared(given)
    return found and found.feed.normalization.name


@pytest.mark.parametrize(
    ("body", "constants", "takes"),
    [
        ("z = Mul(x, a) y = Sigmoid(z)", "float a = {0.0039}", "0..255"),
        ("z = Div(x, a) w = Sub(z, b) y = Relu(w)", "float a = {127.5}, float b = {1.0}", "0..255"),
        ("z = Sub(x, a) y = Relu(z)", "float[3,1,1] a = {123.0, 117.0, 104.0}", "0..255"),
        ("z = Mul(x, a) w = Sub(z, b) y = Relu(w)", "float a = {2.0}, float b = {1.0}", "0..1"),
        ("z = Sub(x, a) w = Div(z, b) y = Relu(w)", "float a = {0.45}, float b = {0.22}", "0..1"),
        ("y = Relu(x)", "float a = {1.0}", None),
    ],
)
def test_a_network_that_normalizes_is_fed_what_it_expects(
    body: str, constants: str, takes: str | None
) -> None:
    assert stated(body, constants) == takes


@pytest.mark.parametrize(
    ("scale", "zero_point", "takes"),
    [
        (0.00392157, -128, "0..1"),
        (0.00784314, -1, "-1..1"),
        (1.0, -128, "0..255"),
        (0.0186, -14, "ImageNet mean and std"),
        (0.05, 0, None),
    ],
)
def test_the_grid_of_a_quantized_input(scale: float, zero_point: int, takes: str | None) -> None:
    body = "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Relu(d)"
    assert stated(body, f"float s = {{{scale}}}, int8 z = {{{zero_point}}}") == takes


@pytest.mark.parametrize(
    ("key", "takes"),
    [("NominalRange_0_255", "0..255"), ("Normalized_0_1", "0..1"), ("Normalized_1_1", "-1..1")],
)
def test_the_notes_of_windows_ml(key: str, takes: str) -> None:
    notes = {"Image.NominalPixelRange": key, "Image.BitmapPixelFormat": "Bgr8"}
    found = declared(facts((1, 3, 32, 32), {"y": (1, 10)}, notes))
    assert found is not None
    assert (found.feed.normalization.name, found.feed.colors) == (takes, "bgr")


@pytest.mark.parametrize("normalization", NORMALIZATIONS, ids=lambda each: each.name)
def test_a_normalization_is_found_by_what_it_makes_of_pixels(normalization) -> None:
    found = of_reach(*normalization.reach)
    assert found is not None
    low, high = normalization.reach
    assert found.reach == pytest.approx((low, high), abs=0.02 * (high - low))


def test_bgr_has_its_numbers_in_its_own_order() -> None:
    by_color = next(each for each in NORMALIZATIONS if each.by_color)
    assert feed(by_color, "bgr", 3).mean == feed(by_color, "rgb", 3).mean[::-1]
    assert {each.colors for each in candidates(1)} == {"gray"}
