"""The samples of one input: a file each, or stacked in a file; each is read once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from npumake import digest
from npumake.data.formats import InputSpec
from npumake.data.input_samples import ModelInput, input_samples
from npumake.data.spool import Spool
from npumake.errors import ProjectError
from npumake.project.feeding import feeding
from npumake.project.files import SourceFile
from npumake.project.sections import FileGlob, Files, Input
from npumake.project.transforms import Colors, Resize, Yuv

SHAPE = (1, 2, 3)
STACK = np.arange(30, dtype=np.float32).reshape(5, 2, 3)
X = ModelInput("x", Input(), feeding("x", Input(), SHAPE), InputSpec(SHAPE, "float32"))


def files(*paths: Path) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(path.name, str(path), digest.of_file(path)) for path in paths)


def kept(*paths: Path, **how: object) -> Spool:
    data = {"x": Files(FileGlob("*"), **how)}
    (found,) = input_samples({"x": X}, data, {"data.x.files": files(*paths)})
    return Spool(map(found.prepare, found.items()))


def refusal(*paths: Path, **how: object) -> tuple[str, str, str]:
    with pytest.raises(ProjectError) as caught:
        kept(*paths, **how)
    return caught.value.what, str(caught.value.where), caught.value.hint


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", STACK)
    return tmp_path / "a.npy"


def written(folder: Path) -> list[Path]:
    np.savez(folder / "b.npz", x=STACK[:, None], y=STACK)
    save_file({"x": STACK}, folder / "c.safetensors")
    return [folder / "a.npy", folder / "b.npz", folder / "c.safetensors"]


def test_the_first_dimension_of_a_stack_counts_its_samples(npy: Path):
    found = kept(*written(npy.parent), stacked=True, member="x")
    assert [fact.name for fact in found.facts[4:6]] == ["4 of a.npy", "0 of b.npz"]
    assert len(found) == 15
    for index in range(15):
        np.testing.assert_array_equal(found.read(index)["x"], STACK[index % 5][None])


def test_the_samples_of_a_stack_are_transformed_one_by_one(npy: Path):
    pixels = np.arange(5 * 8, dtype=np.uint8).reshape(5, 4, 2, 1)
    np.save(npy, pixels)
    image = (1, 1, 2, 1)
    target = ModelInput("x", Input(), feeding("x", Input(), image), InputSpec(image, "float32"))
    data = {"x": Files(FileGlob("*"), stacked=True, transforms=({"resize": Resize()},))}
    (found,) = input_samples({"x": target}, data, {"data.x.files": files(npy)})
    assert len(Spool(map(found.prepare, found.items()))) == 5


def test_what_is_kept_can_be_read_again_and_written_to(npy: Path):
    found = kept(npy, stacked=True)
    found.read(2)["x"][:] = 0
    np.testing.assert_array_equal(found.read(2)["x"], STACK[2][None])


def test_what_is_kept_needs_its_files_no_more(npy: Path):
    for path in (singles := [npy.with_name(f"{index}.npy") for index in range(3)]):
        np.save(path, STACK[0])
    spool = kept(*singles)
    for path in singles:
        path.unlink()
    assert [spool.read(index)["x"].shape for index in (0, 1, 2, 0)] == [SHAPE] * 4


def test_a_stack_that_is_not_called_one_is_told_from_a_wrong_sample(npy: Path):
    what, where, hint = refusal(npy)
    assert (what, where) == ("a sample of shape [5, 2, 3], the input takes [1, 2, 3]", "a.npy")
    assert hint == "`stacked: true` under `data:` if the first dimension counts samples"


def test_a_sample_in_a_stack_is_named(npy: Path):
    np.save(npy, np.where(STACK == 13, np.nan, STACK))
    assert refusal(npy, stacked=True)[:2] == ("a sample with NaN or infinity", "2 of a.npy")


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("a.raw", bytes(24), "not a stack of samples"),
        ("a.png", bytes(24), "not a stack of samples"),
        ("a.npy", np.float32(3), "a single number is not a stack of samples"),
        ("a.npy", np.zeros((4, 0, 3), np.float32), "an empty sample"),
        ("a.npy", np.zeros((4, 3, 2), np.float32), "a sample of shape [3, 2], the input takes"),
    ],
)
def test_what_is_no_stack_is_refused(tmp_path: Path, name, data, what):
    path = tmp_path / name
    path.write_bytes(data) if isinstance(data, bytes) else np.save(path, data)
    assert refusal(path, stacked=True)[0].startswith(what)


def test_noise_is_no_stack():
    with pytest.raises(ProjectError, match="noise is fed as it is") as caught:
        input_samples({"x": X}, {"x": Files(random=3, stacked=True)}, {})
    assert caught.value.where == "data.x.stacked"


@pytest.mark.parametrize(
    ("said", "how", "expected"),
    [
        ({"type": "rgb"}, {}, [200, 100, 0]),
        ({"type": "bgr"}, {}, [0, 100, 200]),
        ({}, {}, [200, 100, 0]),
        ({"type": "bgr"}, {"channels": "rgb"}, [200, 100, 0]),
        ({"type": "bgr"}, {"transforms": ({"rgb2bgr": Colors("HWC")},)}, [0, 100, 200]),
        ({"type": "rgb"}, {"transforms": ({"bgr2rgb": Colors("HWC")},)}, [200, 100, 0]),
        ({"type": "yuv444"}, {"transforms": ({"yuv": Yuv("BGR")},)}, [119, 61, 186]),
        ({"type": "gray"}, {}, [119]),
    ],
)
def test_an_image_is_read_in_the_order_that_the_model_was_trained_on(tmp_path, said, how, expected):
    Image.new("RGB", (2, 2), (200, 100, 0)).save(tmp_path / "a.png")
    shape = (1, len(expected), 2, 2)
    x = ModelInput("x", Input(**said), feeding("x", Input(), shape), InputSpec(shape, "float32"))
    data = {"x": Files(FileGlob("*"), **how)}
    (found,) = input_samples({"x": x}, data, {"data.x.files": files(tmp_path / "a.png")})
    sample = found.values(next(iter(found.items())))
    assert np.abs(sample[0, :, 0, 0] - expected).max() <= 1


def test_a_picture_is_not_fed_as_yuv_as_it_is(tmp_path: Path):
    Image.new("RGB", (2, 2), (200, 100, 0)).save(tmp_path / "a.png")
    shape = (1, 3, 2, 2)
    x = ModelInput(
        "x", Input(type="yuv444"), feeding("x", Input(), shape), InputSpec(shape, "float32")
    )
    data = {"x": Files(FileGlob("*"))}
    (found,) = input_samples({"x": x}, data, {"data.x.files": files(tmp_path / "a.png")})
    with pytest.raises(ProjectError, match="trained on yuv444") as caught:
        found.values(next(iter(found.items())))
    assert "rgb2yuv444" in caught.value.hint
