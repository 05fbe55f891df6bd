"""A detector through the stages: cut in original_float, fed from a snapshot, known to the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.snapshots import pictures, write
from detection.heads import SIDE, document, head, hint, props
from npumake import digest
from npumake.data.samples import Samples
from npumake.detection.decode import Rules, decode
from npumake.detection.describe import whole_outputs
from npumake.detection.notes import box_nodes, metadata_of
from npumake.engine.ort import OrtSession
from npumake.errors import CacheError, GraphError, ProjectError, Route
from npumake.graph import Graph
from npumake.progress import hearing
from npumake.project.files import SourceFile
from npumake.project.sections import FilePath, Files, Input, ModelSection
from npumake.stages.optimized_float import optimized_float
from npumake.stages.original_float import original_float
from npumake.stages.samples import samples

UNSIGNED = Input(scale=1 / 255, offset=128)


def source(path: Path) -> tuple[SourceFile, ...]:
    return (SourceFile(path.name, str(path), digest.of_file(path)),)


def made(folder: Path, model: bytes, beside: str | None = None, **keys: Any) -> Graph:
    """original_float of a head, with an edgefirst.json beside it or not."""
    (folder / "m.onnx").write_bytes(model)
    sources = {"model.path": source(folder / "m.onnx")}
    if beside is not None:
        (folder / "edgefirst.json").write_text(beside)
        sources["model.metadata"] = source(folder / "edgefirst.json")
        keys["metadata"] = FilePath("edgefirst.json")
    return original_float(ModelSection(FilePath("m.onnx"), **keys), {"*": UNSIGNED}, sources)


def names(graph: Graph) -> list[str]:
    return [str(value.name) for value in graph.outputs]


def told(graph: Graph) -> dict[str, Any]:
    found = metadata_of(graph)
    assert found is not None
    return dict(found.document)


@pytest.mark.parametrize("strides", [False, True])
def test_the_metadata_of_the_model_says_where_it_is_cut(tmp_path, strides):
    model = head(edgefirst=props(split_hints=[hint(strides=strides)]))
    graph = made(tmp_path, model, split="hints")
    assert len(graph.outputs) == (10 if strides else 5)
    assert "split_hints" not in told(graph)
    assert [o["type"] for o in told(graph)["outputs"]] == [
        *("boxes", "scores", "mask_coefs", "protos"),
    ]
    assert json.loads(graph.metadata["labels"]) == ["disc", "box", "star"]


@pytest.mark.parametrize("keys", [{}, {"split": "hints"}])
def test_anchors_that_are_computed_of_shapes_are_as_good_as_given_ones(tmp_path, keys):
    computed, given = (
        made(tmp_path, head(any_size=any_size, edgefirst=props()), **keys)
        for any_size in (True, False)
    )
    assert told(computed) == told(given)
    assert names(computed) == names(given)


def test_a_file_beside_the_model_counts_before_its_own(tmp_path):
    model = head(edgefirst=props(split_hints=[]))
    assert names(made(tmp_path, model, props(), split="hints"))[0] == "_Mul_2_xy"


def test_without_split_it_stays_whole_and_what_it_carries_goes_along(tmp_path):
    graph = made(tmp_path, head(edgefirst=props(), labels='["a"]'))
    assert names(graph) == ["output0", "output1"]
    described = told(graph).pop("outputs")
    assert [output["type"] for output in described] == ["detection", "protos"]
    assert told(graph) == document(outputs=described)
    assert graph.metadata["labels"] == '["disc", "box", "star"]'


@pytest.mark.parametrize("text", ["{0: 'disc', 1: 'box'}", '["disc", "box"]'])
def test_names_of_an_exporter_go_along_as_labels(tmp_path, text):
    assert json.loads(made(tmp_path, head(names=text)).metadata["labels"]) == ["disc", "box"]
    labeled = made(tmp_path, head(names=text, labels='["a"]'))
    assert json.loads(labeled.metadata["labels"]) == ["a"]


def test_names_that_are_no_list_name_nothing(tmp_path):
    assert "labels" not in made(tmp_path, head(names="{1: 'a', 2: 'b'}")).metadata


def test_what_is_cut_and_optimized_decodes_to_what_was_trained(tmp_path):
    whole = made(tmp_path, head(edgefirst=props()))
    cut = optimized_float(made(tmp_path, head(edgefirst=props()), split="hints"))
    metadata = metadata_of(cut)
    assert metadata is not None
    codes = pictures(1, (3, SIDE, SIDE)).astype(np.float32) - 128
    found = []
    for graph in (whole, cut):
        arrays = OrtSession(graph.to_bytes()).run(None, {"images": codes})
        given = metadata.outputs if graph is cut else whole_outputs(whole, read_hints(whole))
        named = dict(zip(names(graph), arrays, strict=True))
        found.append(decode(named, given, (SIDE, SIDE), Rules(0, 0.7, 0)))
    np.testing.assert_allclose(found[1].boxes, found[0].boxes, atol=1e-5)
    np.testing.assert_allclose(found[1].scores, found[0].scores, atol=1e-5)


def read_hints(graph: Graph) -> Any:
    metadata = metadata_of(graph)
    assert metadata is not None
    return metadata.hints


def test_the_nodes_that_make_boxes_are_found_after_optimization(tmp_path):
    graph = optimized_float(made(tmp_path, head(edgefirst=props()), split="hints"))
    assert box_nodes(graph) == (
        *("/Slice", "/Slice_1", "/Sub", "/Add", "/Add_1", "/Div_1", "/Sub_1", "/Mul_2"),
    )
    assert all(graph.find(name) for name in box_nodes(graph))
    assert box_nodes(made(tmp_path, head())) == (*box_nodes(graph)[:-1], "/Concat_xywh", "/Mul_2")


@pytest.mark.parametrize(
    ("metadata", "keys", "remark"),
    [
        ({"split_hints": []}, {"split": "hints"}, "has no split_hints"),
        (
            {"split_hints": [{"type": "later"}]},
            {"split": "hints"},
            "has no split_hints",
        ),
        ({"split_hints": [], "model": {"end2end": True}}, {"split": "hints"}, None),
    ],
)
def test_what_has_no_effect_is_said_and_stops_nobody(tmp_path, metadata, keys, remark):
    heard: list[str] = []
    with hearing(heard.append):
        made(tmp_path, head(edgefirst=props(**metadata)), **keys)
    assert len(heard) == (remark is not None)
    assert all(remark in sentence for sentence in heard)


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("carried", [False, True])
def test_outputs_are_described_without_a_hint(tmp_path, masks, normalized, carried):
    """As a hint would describe them; a model without metadata is told of."""
    hinted = hint(masks=masks)
    bytes_with = head(masks, normalized=normalized, edgefirst=props(split_hints=[hinted]))
    bare = {"edgefirst": props(split_hints=[])} if carried else {}
    heard: list[str] = []
    with hearing(heard.append):
        found = told(made(tmp_path, head(masks, normalized=normalized, **bare), split="hints"))
    assert found["outputs"] == told(made(tmp_path, bytes_with))["outputs"]
    assert found["input"]["shape"] == [1, 3, SIDE, SIDE]
    assert ("holds no metadata" in heard[0]) != carried


def test_what_no_decoder_knows_is_named_and_has_no_type(tmp_path):
    """Keypoints behind the scores would decode as classes."""
    pose = document(model={"task": "pose"}, split_hints=[])
    heard: list[str] = []
    with hearing(heard.append):
        graph = made(tmp_path, head(edgefirst=json.dumps(pose)), outputs=("output0",))
    (only,) = told(graph)["outputs"]
    assert (only["name"], "type" in only) == ("output0", False)
    assert "no decoder is known" in heard[-1]


@pytest.mark.parametrize("strides", [False, True])
def test_a_part_that_no_decoder_knows_has_no_type(tmp_path, strides):
    """EdgeFirst's refuses whole metadata for a type it does not know."""
    hinted = hint(strides=strides)
    hinted["boundaries"][2]["name"] = "keypoints"
    heard: list[str] = []
    with hearing(heard.append):
        found = told(made(tmp_path, head(edgefirst=props(split_hints=[hinted])), split="hints"))
    assert [output.get("type") for output in found["outputs"]] == ["boxes", "scores", None, None]
    assert {child.get("type") for child in found["outputs"][2].get("outputs", ())} <= {None}
    assert "no decoder is known for keypoints" in heard[0]


def test_a_head_of_several_anchors_stays_whole_with_a_remark(tmp_path):
    hinted = hint() | {"anchors_per_cell": 3}
    heard: list[str] = []
    with hearing(heard.append):
        graph = made(tmp_path, head(edgefirst=props(split_hints=[hinted])), split="hints")
    assert names(graph) == ["output0", "output1"]
    assert "several anchors per cell" in heard[0]


@pytest.mark.parametrize(
    ("metadata", "message", "where"),
    [
        (props(input={"shape": [1, 3, 32, 32]}), "the metadata has an input of", "model.metadata"),
        (
            props(input={"shape": [1, SIDE, SIDE, 3]}),
            "the metadata has an input of",
            "model.metadata",
        ),
        (props(schema_version=3), "schema version 3", "edgefirst in the model: schema_version"),
    ],
)
def test_metadata_that_does_not_fit_is_one_error(tmp_path, metadata, message, where):
    with pytest.raises(ProjectError, match=message) as caught:
        made(tmp_path, head(edgefirst=metadata), split="hints")
    assert caught.value.where == where


def test_outputs_that_do_not_decode_are_refused_before_a_build_and_the_hint_mends_it(tmp_path):
    outputs = told(made(tmp_path, head(edgefirst=props())))["outputs"]
    assert {entry["type"] for entry in outputs} == {"detection", "protos"}
    for entry in outputs:
        name, entry["name"] = entry["name"], f"{entry['name']}s"
        beside = json.dumps({"schema_version": 2, "outputs": outputs})
        with pytest.raises(GraphError, match="does not fit the model: no output") as caught:
            made(tmp_path, head(), beside)
        assert caught.value.where == Route("model.metadata")
        assert caught.value.hint == f"did you mean `{name}`?"
        entry["name"] = name
    made(tmp_path, head(), json.dumps({"schema_version": 2, "outputs": outputs}))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"target": "output9"}, "no output"), ({"strides": [8, 16]}, "not joined from 2 scales")],
)
def test_hints_that_do_not_fit_have_the_place_of_the_split(tmp_path, change, message):
    model = head(edgefirst=props(split_hints=[hint() | change]))
    with pytest.raises(GraphError, match=message) as caught:
        made(tmp_path, model, split="hints")
    assert caught.value.where == Route("model.split")


def test_outputs_that_are_no_boxes_need_no_decoder(tmp_path):
    outputs = [{"name": "output0", "type": "landmarks", "shape": [1, 2]}]
    made(tmp_path, head(), json.dumps({"schema_version": 2, "outputs": outputs}))


def fed(folder: Path, snapshot: Path, given: Input = UNSIGNED, key: str = "*") -> Samples:
    graph = made(folder, head(edgefirst=props()), split="hints")
    return samples(
        graph,
        {"*": given},
        {key: Files(snapshot=FilePath(snapshot.name))},
        {f"data.{key}.snapshot": source(snapshot)},
    )


def stored(folder: Path, **changes: Any) -> Path:
    shape = {"input_shape": [SIDE, SIDE], **changes.pop("params", {})}
    tensors = {changes.pop("name", "images"): pictures(9, (3, SIDE, SIDE))}
    return write(folder, shape, changes, tensors)


def test_samples_tell_of_their_snapshot_as_a_converter_records_it(tmp_path):
    snapshot = stored(tmp_path)
    found = fed(tmp_path, snapshot)
    geometry = {"resize": "letterbox", "input_shape": [SIDE, SIDE]}
    assert found.origin == {"calibration": snapshot.name, "calibration_geometry": geometry}
    found.save(tmp_path / "samples.npz")
    assert Samples.load(tmp_path / "samples.npz").origin == found.origin


@pytest.mark.parametrize("key", ["*", "images"])
def test_the_samples_of_a_snapshot_are_its_pictures_as_codes(tmp_path, key):
    found = fed(tmp_path, stored(tmp_path), key=key)
    assert len(found) == 9
    for feed, picture in zip(found, pictures(9, (3, SIDE, SIDE)), strict=True):
        np.testing.assert_array_equal(feed["images"], picture[None].astype(np.float32) - 128)


def test_a_snapshot_of_another_normalization_tells_what_to_write(tmp_path):
    given = {"scale": 1 / 255, "mean": [0.5] * 3, "std": [0.25] * 3}
    path = stored(tmp_path, params={"normalization": given})
    with pytest.raises(ProjectError, match="another normalization") as caught:
        fed(tmp_path, path)
    assert caught.value.where == Route("inputs.images")
    assert "mean: [127.5, 127.5, 127.5], scale: [0.0156" in caught.value.hint
    fed(tmp_path, path, Input(mean=127.5, scale=4 / 255, offset=128))


def test_a_snapshot_without_the_input_names_the_nearest(tmp_path):
    with pytest.raises(ProjectError, match="holds no samples for `images`") as caught:
        fed(tmp_path, stored(tmp_path, name="image"))
    assert caught.value.hint == "did you mean `image`?"


@pytest.mark.parametrize(
    "other",
    [{"random": 9}, {"files": "*.npy"}, {"normalized": True}, {"member": "x"}, {"dtype": "uint8"}],
)
def test_what_a_snapshot_says_itself_is_not_said_beside_it(tmp_path, other):
    graph, files = made(tmp_path, head()), source(stored(tmp_path))
    data = {"images": Files(snapshot=FilePath("s.safetensors"), **other)}
    with pytest.raises(ProjectError, match=f"`{next(iter(other))}` beside a snapshot"):
        samples(graph, {}, data, {"data.images.snapshot": files})


def test_a_snapshot_that_changes_while_it_is_used_is_not_used(tmp_path):
    path = stored(tmp_path)
    graph = made(tmp_path, head())
    (file,) = source(path)
    path.write_bytes(path.read_bytes() + b"x")
    data = {"images": Files(snapshot=FilePath(path.name))}
    with pytest.raises(CacheError, match="changed while"):
        samples(graph, {"*": UNSIGNED}, data, {"data.images.snapshot": (file,)})
