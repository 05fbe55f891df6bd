"""samples: files become feeds, together, in the order of their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from npumake import digest
from npumake.borders.images import mark_images
from npumake.data.samples import Samples
from npumake.errors import ProjectError
from npumake.graph import Graph, parse_text
from npumake.project.files import SourceFile, pattern_files
from npumake.project.sections import FileGlob, Files, Input
from npumake.project.transforms import PadResize
from npumake.stages.samples import samples

GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 3, 8, 6] image, float[1, 2] state) => (float[1, 3, 8, 6] y, float[1, 2] z) {
  y = Relu(image)
  z = Relu(state)
}"""
RNG = np.random.default_rng(0)
NOISE = Files(random=9)


@pytest.fixture
def graph() -> Graph:
    graph = parse_text(GRAPH)
    mark_images(graph, ["image"])
    return graph


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for index in range(9):
        pixels = RNG.integers(0, 256, (10, 20, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{index}.png")
    return tmp_path


def made(graph: Graph, folder: Path, **data: Files) -> Samples:
    found = tuple(
        SourceFile(name, path, digest.of_file(Path(path)))
        for name, path in pattern_files(folder, "*")
    )
    sources = {f"data.{name}.files": found for name, how in data.items() if how.files}
    return samples(graph, {"image": Input(offset=128)}, data, sources)


def refusal(graph: Graph, folder: Path, **data: Files) -> tuple[str, str]:
    with pytest.raises(ProjectError) as caught:
        made(graph, folder, **data)
    return caught.value.what, str(caught.value.where)


def images(**how: object) -> Files:
    return Files(FileGlob("*"), transforms=({"pad_resize": PadResize()},), **how)


def test_images_and_noise_are_fed_together(graph, pictures):
    given = made(graph, pictures, image=images(), state=NOISE)
    assert given.names == tuple(f"{index}.png" for index in range(9))
    feed = given.read(3)
    assert {name: array.shape for name, array in feed.items()} == {
        "image": (1, 3, 8, 6),
        "state": (1, 2),
    }
    assert (feed["image"][0, :, 0] == 127 - 128).all()
    assert 0 <= feed["state"].min() < feed["state"].max() < 1


def test_the_same_files_give_the_same_bytes(graph, pictures, tmp_path_factory):
    files = [tmp_path_factory.mktemp("made") / "samples.npz" for _ in range(2)]
    for file in files:
        made(graph, pictures, image=images(), state=NOISE).save(file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_link_is_a_file(graph, pictures, tmp_path_factory):
    linked = tmp_path_factory.mktemp("linked")
    for path in pictures.iterdir():
        (linked / path.name).symlink_to(path)
    assert len(made(graph, linked, image=images(), state=NOISE)) == 9


def test_as_many_of_one_input_as_of_another(graph, pictures):
    what, where = refusal(graph, pictures, image=images(), state=Files(random=8))
    assert (what, where) == (
        "8 samples for input `state`, but 9 for `image`",
        "data.state",
    )


def test_a_finding_is_told_under_its_input_unless_allowed(graph, pictures):
    Image.new("RGB", (6, 8)).save(pictures / "x.png")
    ten = Files(random=10)
    what, where = refusal(graph, pictures, image=images(), state=ten)
    assert (what, where) == ("samples with one value all over: x.png (0)", "data.image")
    assert len(made(graph, pictures, image=images(allow=("blank",)), state=ten)) == 10


@pytest.mark.parametrize(
    ("how", "what", "where"),
    [
        (Files(), "input `image` needs either files or noise", "data.image"),
        (images(random=9), "input `image` needs either files or noise", "data.image"),
        (images(range=(1.0,)), "a range is [lowest, highest]", "data.image.range"),
        (images(range=(2.0, 1.0)), "a range is [lowest, highest]", "data.image.range"),
        (
            Files(random=9, transforms=({"pad_resize": PadResize()},)),
            "noise is fed as it is",
            "data.image.transforms",
        ),
    ],
)
def test_keys_that_contradict_each_other_are_refused(graph, pictures, how, what, where):
    assert refusal(graph, pictures, image=how, state=NOISE) == (what, where)


def test_padding_of_a_transform_is_no_finding_and_that_of_the_files_is(graph, tmp_path):
    for index in range(9):
        pixels = RNG.integers(0, 256, (8, 6, 3), np.uint8)
        pixels[-1] = 0
        Image.fromarray(pixels).save(tmp_path / f"{index}.png")
    what, _ = refusal(graph, tmp_path, image=Files(FileGlob("*")), state=NOISE)
    assert "1 line of 0 at the bottom" in what
    assert len(made(graph, tmp_path, image=images(), state=NOISE)) == 9
