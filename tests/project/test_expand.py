"""Overlays: base ⊕ overlay, variants, matrix, and targets with an overlay of their own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npumake.errors import Place, ProjectError
from npumake.project.document import Document, parse_document
from npumake.project.expand import MAX_VARIANTS, merged, variants
from npumake.project.reader import Project, project_of, read_project
from npumake.project.sections import Calibration

SMALL = "model: {path: m.onnx}\ndata: {image: {files: s}}\ntargets: [imx93]\n"


def document(text: str) -> Document:
    return parse_document(text.encode(), "p.yaml")


def project(text: str) -> Project:
    return project_of(document(SMALL + text), "net", Path("net"))


def names(text: str) -> list[str | None]:
    return [variant.variant for variant in project(text).variants]


values = st.recursive(
    st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)
mappings = st.dictionaries(st.sampled_from("abc"), values)


def written(value: object) -> Document:
    """JSON is YAML."""
    return document(str(value).replace("'", '"').replace("None", "null"))


@given(mappings)
def test_nothing_changes_nothing(base):
    assert merged(written(base), written({})).data == base


@given(mappings, mappings)
def test_an_overlay_stands_where_it_speaks(base, overlay):
    both = merged(written(base), written(overlay))
    assert merged(both, written(overlay)) == both
    assert set(both.data) == {*base, *overlay}


@given(mappings, mappings, mappings)
def test_overlays_may_be_merged_in_any_grouping(base, one, two):
    a, b, c = written(base), written(one), written(two)
    if all(isinstance(x.get(k, {}), dict) for x in (base, one, two) for k in "abc"):
        assert merged(merged(a, b), c).data == merged(a, merged(b, c)).data


@given(mappings, mappings)
def test_every_route_has_the_place_of_its_value(base, overlay):
    ours, theirs = written(base), written(overlay)
    both = merged(ours, theirs)
    for route, spot in both.places.items():
        assert spot == theirs.places.get(route, ours.places.get(route))


def test_mappings_merge_and_lists_replace():
    text = (
        "inputs: {image: {mean: [1, 2], scale: 3}}\nvariants: {a: {inputs: {image: {mean: [4]}}}}"
    )
    (variant,) = project(text).variants
    assert variant.sections.inputs["image"].mean == (4.0,)
    assert variant.sections.inputs["image"].scale == 3.0
    assert variant.sections.variants == {}


def test_a_key_of_a_variant_is_where_its_overlay_is_written():
    (variant,) = project("variants:\n  a: {calibration: {method: kl}}\n").variants
    assert variant.places["calibration.method"] == Place("p.yaml", 5, 29)
    assert variant.places["model.path"] == Place("p.yaml", 1, 15)


def test_a_matrix_is_every_combination_the_last_key_turning_fastest():
    text = "matrix: {calibration.method: [max, kl], calibration.percentile: [0.9, 1e-0]}"
    assert names(text) == ["max-0.9", "max-1.0", "kl-0.9", "kl-1.0"]
    assert project(text).variants[1].sections.calibration == Calibration("max", 1.0)


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("compile.prefix", "[a b, 'x/y', null]", ["a_b", "x_y", "null"]),
        ("inputs.image.shape", "[[1, 3, 8, 8]]", ["1_3_8_8"]),
        ("inputs.image.mean", "[-1, 1.50, 1e-7]", ["-1", "1.5", "1e-07"]),
    ],
)
def test_a_combination_is_called_by_its_values(key, values, expected):
    assert names(f"matrix: {{{key}: {values}}}") == expected


def test_a_dotted_key_finds_a_name_that_holds_dots():
    text = "inputs: {input.1: {mean: 0}, input: {}}\nmatrix: {inputs.input.1.mean: [5]}"
    (variant,) = project(text).variants
    assert variant.sections.inputs["input.1"].mean == 5.0


def test_variants_come_before_the_matrix_and_in_the_order_of_the_text():
    text = "matrix: {calibration.method: [kl, max]}\nvariants: {z: {}, a: {}}"
    assert names(text) == ["z", "a", "kl", "max"]


def test_as_many_variants_as_promised_and_no_more():
    many = "".join(f"  v{number}: {{}}\n" for number in range(MAX_VARIANTS))
    assert len(names(f"variants:\n{many}")) == MAX_VARIANTS
    with pytest.raises(ProjectError, match="too many variants: at most 256"):
        names(f"variants:\n{many}  one_more: {{}}\n")


def test_variants_of_a_huge_document_are_bounded_together():
    values = ", ".join(["1"] * 20_000)
    many = "".join(f"  v{number}: {{}}\n" for number in range(20))
    text = f"inputs: {{image: {{mean: [{values}]}}}}\nvariants:\n{many}"
    with pytest.raises(ProjectError, match="too many variants"):
        variants(document(SMALL + text))


def test_a_target_reads_its_overlay_and_the_others_do_not():
    text = SMALL.replace("[imx93]", "[imx93, rdk: {calibration: {method: max}}]")
    found = project_of(document(text), "net", Path("net")).targets
    assert list(found) == ["imx93", "rdk"]
    assert [reading.sections.calibration.method for reading in found.values()] == ["kl", "max"]
    assert [reading.own for reading in found.values()] == [(), ("calibration",)]


def test_an_overlay_of_a_target_stands_above_the_variant():
    text = SMALL.replace("[imx93]", "[imx93, rdk: {calibration: {method: max}}]")
    text += "variants: {a: {calibration: {method: max_percentile, percentile: 0.9}}}"
    (variant,) = project_of(document(text), "net", Path("net")).variants
    assert variant.targets["imx93"].sections.calibration == Calibration("max_percentile", 0.9)
    assert variant.targets["rdk"].sections.calibration == Calibration("max", 0.9)


def test_variants_may_have_a_file_of_their_own(tmp_path):
    (tmp_path / "project.yaml").write_text(SMALL)
    (tmp_path / "variants.yaml").write_text("a: {calibration: {method: max}}\n")
    (variant,) = read_project(tmp_path).variants
    assert variant.places["calibration.method"].path.endswith("variants.yaml")
    assert variant.places["calibration.method"].column == 27


keys = st.sampled_from(
    ["model", "data", "targets", "calibration", "variants", "matrix", "method", "path", "x", "max"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(st.fixed_dictionaries({"matrix": anything, "variants": anything, "targets": anything}))
def test_any_overlays_are_a_project_or_one_mistake_with_a_place(found):
    import json

    text = "model: {path: m}\ndata: {x: {files: s}}\n" + "".join(
        f"{key}: {json.dumps(value)}\n" for key, value in found.items()
    )
    try:
        project_of(document(text), "net", Path("net"))
    except ProjectError as error:
        where = error.where
    else:
        where = Place("p.yaml")
    assert isinstance(where, Place)


def test_a_dotted_key_cannot_be_deeper_than_a_text():
    with pytest.raises(ProjectError, match="nested more than 64 deep"):
        project(f"matrix: {{{'a.' * 100}a: [1]}}")
