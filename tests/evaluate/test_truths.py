"""What is true of each file: labels in folders, CSV, JSON and COCO, and every mistake in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npumake import digest
from npumake.errors import ProjectError
from npumake.evaluate.truths import labeled_files
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import Dataset, FileGlob, FilePath

FILES = ("a.jpg", "b.jpg", "c.jpg")


def sources(tmp_path: Path, labels: str | None, suffix: str, files: tuple[str, ...]) -> SourceFiles:
    found: dict[str, tuple[SourceFile, ...]] = {
        "evaluation.dataset.files": tuple(SourceFile(name, name, "") for name in files)
    }
    if labels is not None:
        path = tmp_path / f"labels{suffix}"
        path.write_text(labels)
        file = SourceFile(path.name, str(path), digest.of_file(path))
        found["evaluation.dataset.labels"] = (file,)
    return found


def read(
    tmp_path: Path,
    labels: str | None,
    suffix: str = ".csv",
    files: tuple[str, ...] = FILES,
    classes: tuple[str, ...] = (),
    limit: int | None = None,
    **how: object,
) -> list[tuple[str, object]]:
    given = None if labels is None else FilePath("labels")
    dataset = Dataset(FileGlob("*"), given, classes=classes, **how)  # type: ignore[arg-type]
    found = labeled_files(dataset, sources(tmp_path, labels, suffix, files), limit).items
    return [(item.files[0].name, item.truth) for item in found]


def test_a_csv_may_have_other_columns_and_files(tmp_path: Path) -> None:
    text = "label,file,synset\n3,c.jpg,x\n1,b.jpg,y\n0,a.jpg,z\n7,other.jpg,w\n"
    assert read(tmp_path, text) == [("a.jpg", 0), ("b.jpg", 1), ("c.jpg", 3)]


def test_a_column_may_be_named_and_the_first_class_be_background(tmp_path: Path) -> None:
    text = "file,class_index,name\na.jpg,3,x\nb.jpg,1,y\nc.jpg,0,z\n"
    found = read(tmp_path, text, label_column="class_index", label_offset=1)
    assert found == [("a.jpg", 4), ("b.jpg", 2), ("c.jpg", 1)]


def test_names_are_numbered_in_their_order_or_as_classes_says(tmp_path: Path) -> None:
    text = json.dumps([{"file": file, "label": name} for file, name in zip(FILES, "zxy")])  # noqa: B905
    assert [truth for _, truth in read(tmp_path, text, ".json")] == [2, 0, 1]
    order = ("z", "y", "x")
    assert [truth for _, truth in read(tmp_path, text, ".json", classes=order)] == [0, 2, 1]


def test_a_json_may_be_one_object(tmp_path: Path) -> None:
    text = json.dumps({"val/a.jpg": 4, "b.jpg": "5", "c.jpg": 6})
    assert [truth for _, truth in read(tmp_path, text, ".json")] == [4, 5, 6]


def test_folders_are_labels(tmp_path: Path) -> None:
    files = ("cat/1.jpg", "cat/2.jpg", "dog/1.jpg")
    assert [truth for _, truth in read(tmp_path, None, files=files)] == [0, 0, 1]


def test_a_limit_is_spread_evenly(tmp_path: Path) -> None:
    files = tuple(f"{n // 5}/{n}.jpg" for n in range(10))
    assert [truth for _, truth in read(tmp_path, None, files=files, limit=4)] == [0, 0, 1, 1]


COCO = {
    "images": [{"id": n, "file_name": name} for n, name in enumerate(FILES)],
    "annotations": [
        {"image_id": 0, "category_id": 9, "bbox": [1, 2, 3, 4], "iscrowd": 1},
        {"image_id": 2, "category_id": 3, "bbox": [0, 0, 5, 5.5]},
    ],
    "categories": [{"id": 9, "name": "dog"}, {"id": 3, "name": "cat"}],
}


def test_coco_has_boxes_crowds_and_pictures_of_nothing(tmp_path: Path) -> None:
    (_, first), (_, none), (_, last) = read(tmp_path, json.dumps(COCO), ".json")
    assert first.boxes.tolist() == [[1, 2, 4, 6]]  # type: ignore[attr-defined]
    assert (first.labels.tolist(), first.crowd.tolist()) == ([1], [True])  # type: ignore[attr-defined]
    assert none.boxes.shape == (0, 4)  # type: ignore[attr-defined]
    assert last.boxes.tolist() == [[0, 0, 5, 5.5]]  # type: ignore[attr-defined]


def wrong(**changed: object) -> str:
    annotation = COCO["annotations"][0] | changed  # type: ignore[operator]
    return json.dumps(COCO | {"annotations": [annotation]})


@pytest.mark.parametrize(
    ("suffix", "text", "what", "where"),
    [
        (".csv", "", "no column `file`", "labels.csv:1:1"),
        (".csv", "file,lable\n", "no column `label`", "labels.csv:1:1"),
        (".csv", "file,label\na.jpg\n", "1 cells, the first line has 2", "labels.csv:2:1"),
        (".csv", 'file,label\n"a.jpg,1\n', "not a CSV", "labels.csv:2:1"),
        (".csv", "file,label\na.jpg,1\na.jpg,2\n", "`a.jpg` has two labels", "labels.csv:3:1"),
        (".csv", "file,label\na.jpg,1\n", "`b.jpg` has no label", "labels.csv"),
        (".json", "[{]", "not JSON", "labels.json:1:3"),
        (".json", "[" * 100_000, "not JSON", "labels.json"),
        (".json", "3", "neither a list nor an object", "labels.json"),
        (".json", "[3]", "an entry without `file` and `label`", "labels.json: 0"),
        (".json", '[{"file": "a", "label": 1.5}]', "`label` text or a whole", "labels.json: 0"),
        (".json", wrong(image_id=7), "no image has the id 7", "labels.json: annotations.0"),
        (".json", wrong(category_id=7), "no category has the id 7", "labels.json: annotations.0"),
        (".json", wrong(category_id=[]), "`category_id` must be", "labels.json: annotations.0"),
        (".json", wrong(bbox=[1, 2, -3, 4]), "`bbox` must be", "labels.json: annotations.0"),
        (".json", wrong(bbox=[1, 2, 3, "4"]), "`bbox` must be", "labels.json: annotations.0"),
        (".txt", "", "`labels.txt` is neither .csv nor .json", "evaluation.dataset.labels"),
    ],
)
def test_a_mistake_is_one_error_at_its_place(
    tmp_path: Path, suffix: str, text: str, what: str, where: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        read(tmp_path, text, suffix)
    assert what in caught.value.what
    assert caught.value.hint
    assert str(caught.value.where) == where


def test_a_label_outside_the_classes_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"`dgo` is not in `classes`.*did you mean `dog`"):
        read(tmp_path, "file,label\na.jpg,dgo\n", classes=("cat", "dog"))


def names(tmp_path: Path, labels: str | None, suffix: str = ".csv", **how: object) -> object:
    path = None if labels is None else FilePath("labels")
    dataset = Dataset(FileGlob("*"), path, **how)  # type: ignore[arg-type]
    return labeled_files(dataset, sources(tmp_path, labels, suffix, FILES)).class_names


def test_the_class_names_are_those_of_the_labels_in_the_order_of_the_classes(
    tmp_path: Path,
) -> None:
    words = "file,label\na.jpg,z\nb.jpg,x\nc.jpg,y\n"
    assert names(tmp_path, words) == ("x", "y", "z")
    assert names(tmp_path, words, classes=("z", "y", "x")) == ("z", "y", "x")
    assert names(tmp_path, "file,label\na.jpg,2\nb.jpg,0\nc.jpg,1\n") == ()
    categories = [{"id": 9, "name": "car"}, {"id": 2, "name": "bus"}]
    images = [{"id": n, "file_name": file} for n, file in enumerate(FILES)]
    coco = json.dumps({"images": images, "annotations": [], "categories": categories})
    assert names(tmp_path, coco, ".json") == ("bus", "car")
    assert names(tmp_path, coco, ".json", classes=("car", "bus")) == ("car", "bus")
