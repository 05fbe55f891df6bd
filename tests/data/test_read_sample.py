"""One .npy file, checked against the input it feeds."""

import contextlib
import io
import pickle
import random
import tracemalloc

import numpy as np
import pytest

from npumake.data.files import prepared, to_feed
from npumake.data.formats import InputSpec, decoded
from npumake.errors import ProjectError
from npumake.project.sections import Files

SHAPE = (1, 2, 3)
RAMP = np.arange(6, dtype=np.float32).reshape(2, 3)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(shape: str, descr: str = "'<f4'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def read_sample(data: bytes, taken: InputSpec) -> np.ndarray:
    return prepared(decoded(data, "s.npy", Files(), taken), "s.npy", Files(), taken)


def fed(data: bytes, dtype: str = "float32", offset: int = 0) -> np.ndarray:
    taken = InputSpec(SHAPE, dtype, offset)
    return to_feed(read_sample(data, taken), taken)


def refusal(data: bytes, dtype: str = "float32", offset: int = 0) -> str:
    with pytest.raises(ProjectError) as caught:
        fed(data, dtype, offset)
    assert caught.value.where == "s.npy"
    return caught.value.what


@pytest.mark.parametrize(
    "array",
    [RAMP, RAMP[None], np.asfortranarray(RAMP), RAMP.astype(">f4"), RAMP[::-1][::-1]],
    ids=["no batch", "batch", "columns first", "big endian", "view"],
)
def test_a_sample_is_fed_as_its_input_takes_it(array):
    given = fed(npy(array))
    assert (given.shape, given.dtype) == (SHAPE, np.dtype("float32"))
    np.testing.assert_array_equal(given, RAMP[None])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_image_is_fed_minus_128(dtype):
    pixels = np.array([[0, 1, 128], [129, 254, 255]], dtype)
    assert fed(npy(pixels), offset=128).tolist() == [[[-128, -127, 0], [1, 126, 127]]]


def test_a_whole_number_input_is_fed_whole_numbers():
    assert fed(npy(RAMP.astype(np.int64)), "int64").dtype == np.int64


def test_what_is_fed_can_be_written_to():
    given = fed(npy(RAMP))
    given[:] = 0
    assert not given.any()


@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 2, 3), (1, 1, 2, 3), ()])
def test_another_shape_is_refused(shape):
    what = refusal(npy(np.zeros(shape, np.float32)))
    assert what == f"a sample of shape {list(shape)}, the input takes [1, 2, 3]"


def test_a_batch_is_not_left_out_of_an_input_of_many():
    with pytest.raises(ProjectError, match=r"shape \[3\], the input takes \[2, 3\]"):
        read_sample(npy(RAMP[0]), InputSpec((2, 3), "float32"))


@pytest.mark.parametrize("dtype", ["uint8", "complex64"])
def test_another_type_is_refused(dtype):
    assert refusal(npy(RAMP.astype(dtype))) == f"a sample of {dtype}, the input takes float32"


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "int32", "int64", "bool"])
def test_numbers_that_the_input_holds_are_cast(dtype):
    given = fed(npy(RAMP.astype(dtype)))
    assert given.dtype == np.float32
    np.testing.assert_array_equal(given, RAMP.astype(dtype).astype(np.float32)[None])


@pytest.mark.parametrize(
    ("number", "stored", "taken"),
    [
        (2**24 + 1, "int32", "float32"),
        (1e39, "float64", "float32"),
        (0.5, "float32", "int64"),
        (300, "int64", "int8"),
        (2, "int32", "bool"),
    ],
)
def test_numbers_that_the_input_does_not_hold_are_refused(number, stored, taken):
    data = npy(np.full((2, 3), number, stored))
    assert refusal(data, taken) == f"a sample of {stored}, the input takes {taken}"


def test_the_hint_of_a_type_is_about_that_type():
    for dtype, offset, hint in (
        ("uint8", 0, "`offset: 128` under `inputs:` if these are 8-bit images"),
        ("complex64", 0, "save it as float32: x.astype(...)"),
        ("int32", 128, "save it as uint8: x.astype(...)"),
    ):
        with pytest.raises(ProjectError) as caught:
            fed(npy(RAMP.astype(dtype)), offset=offset)
        assert caught.value.hint == hint


@pytest.mark.parametrize("dtype", ["int8", "int32", "float64"])
def test_an_image_of_another_type_is_refused(dtype):
    what = refusal(npy(RAMP.astype(dtype)), offset=128)
    assert what == f"a sample of {dtype}, the input takes uint8 or float32"


def test_bytes_for_a_float_input_are_refused_with_the_likely_remedy():
    with pytest.raises(ProjectError) as caught:
        fed(npy(RAMP.astype(np.uint8)))
    assert caught.value.hint == "`offset: 128` under `inputs:` if these are 8-bit images"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(value):
    assert refusal(npy(RAMP + value)) == "a sample with NaN or infinity"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        npy(RAMP)[:-1],
        npy(RAMP)[:64],
        npy(RAMP)[:9],
        npy(RAMP) + b"\0",
        npy(np.array([[None] * 3] * 2)),
        pickle.dumps(RAMP),
        header("(2, 3)", "'|O'") + bytes(48),
        header("(1000000000000,)") + bytes(24),
        header("(10000000000000000000000,)") + bytes(24),
        header("(True, 6)") + bytes(24),
        header("(" * 300 + ")" * 300),
        header("(2, 3"),
        header("'two'") + bytes(24),
        header("(2, 3)", "'<f99'"),
        header("(2, 3)", "[('a', '<f4', 99999999999)]"),
    ],
    ids=lambda data: repr(data[-40:])[:40],
)
def test_what_is_no_array_of_numbers_is_refused(data):
    assert refusal(data).startswith("not a .npy file of numbers: ")


def test_an_empty_sample_is_refused():
    assert refusal(npy(np.zeros((0, 3), np.float32))) == "an empty sample"


def test_text_and_records_are_refused():
    assert refusal(npy(np.full((2, 3), "a"))).startswith("a sample of str")
    assert refusal(npy(np.zeros((2, 3), [("a", "f4")]))).startswith("a sample of void")


@pytest.mark.filterwarnings("ignore")
def test_any_damage_is_a_sample_or_one_project_error():
    whole, rng, read = npy(RAMP), random.Random(0), 0
    for _ in range(2000):
        data = bytearray(whole)
        data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(ProjectError):
            read += fed(bytes(data)).shape == SHAPE
    assert 0 < read < 2000


def test_a_claimed_size_takes_no_memory():
    tracemalloc.start()
    refusal(header("(1000000000,)") + bytes(24))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
