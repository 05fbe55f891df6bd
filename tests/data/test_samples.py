"""Samples in one file: what stock NumPy opens, read one at a time."""

import tracemalloc

import numpy as np
import pytest

from npumake.data.samples import NAMES, Samples
from npumake.errors import CacheError


def arrays(index: int) -> dict[str, np.ndarray]:
    return {
        "image": np.full((1, 3, 4, 4), index / 4, np.float32),
        "state:0": np.array(index, np.int64),
    }


SAMPLES = Samples(("cat/0.npy", "chien é.npy", "z.npy"), arrays)


@pytest.fixture
def path(tmp_path):
    SAMPLES.save(tmp_path / "s.npz")
    return tmp_path / "s.npz"


def test_a_round_trip_gives_the_same_samples(path):
    loaded = Samples.load(path)
    assert loaded.names == SAMPLES.names
    assert len(loaded) == 3
    for given, read in zip(SAMPLES, loaded, strict=True):
        assert given.keys() == read.keys()
        for name, array in given.items():
            assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(read[name], array)


def test_numpy_opens_the_file(path):
    with np.load(path) as opened:
        assert sorted(opened.files) == sorted(["image", "state:0", NAMES])
        assert opened["image"].shape == (3, 1, 3, 4, 4)
        assert opened[NAMES].tolist() == list(SAMPLES.names)


def test_the_bytes_are_the_same_every_time(path, tmp_path):
    Samples.load(path).save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_a_sample_is_read_from_the_file_when_it_is_asked_for(path):
    loaded = Samples.load(path)
    data = path.read_bytes()
    at = data.index(np.full(48, 0.5, np.float32).tobytes())
    with path.open("r+b") as file:
        file.seek(at)
        file.write(np.float32(9.0).tobytes())
    assert loaded.read(2)["image"].reshape(-1)[:2].tolist() == [9.0, 0.5]


def test_a_sample_is_a_copy_of_its_own(path):
    loaded = Samples.load(path)
    loaded.read(0)["image"][:] = 7
    assert not (loaded.read(0)["image"] == 7).any()


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path):
    megabyte = np.zeros(1 << 18, np.float32)
    many = Samples(tuple(f"{n}.npy" for n in range(32)), lambda index: {"x": megabyte + index})
    tracemalloc.start()
    many.save(tmp_path / "many.npz")
    loaded = Samples.load(tmp_path / "many.npz")
    assert [int(feed["x"][0]) for feed in loaded] == list(range(32))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_another_file_is_refused(path, tmp_path):
    whole = path.read_bytes()
    np.savez_compressed(tmp_path / "compressed.npz", image=np.zeros(3))
    np.savez(tmp_path / "nameless.npz", image=np.zeros(3))
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "header.npz").write_bytes(whole.replace(b"'fortran_order'", b"'fortran_orde('"))
    for name in ("compressed", "nameless", "half", "empty", "header", "absent"):
        with pytest.raises(CacheError, match="not a samples file"):
            Samples.load(tmp_path / f"{name}.npz")
