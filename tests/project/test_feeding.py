"""What may be fed to what: the one table, and one error per broken rule."""

import itertools

import pytest

from npumake.errors import ProjectError, Route
from npumake.project.feeding import LEGAL, PICTURES, feeding
from npumake.project.sections import CameraPreprocess, Input

FED = ("rgb", "bgr", "gray", "yuv444", "nv12", "featuremap")


def shape(trained: str) -> tuple[int, ...]:
    return (1, 1, 8, 8) if trained == "gray" else (1, 3, 8, 8)


def test_the_legal_pairs_are_those_of_the_vendors_table():
    rows = {
        "yuv444": "n n n y y n",
        "rgb": "y y n y y n",
        "bgr": "y y n y y n",
        "gray": "n n y n n n",
        "featuremap": "n n n n n y",
    }
    for trained, row in rows.items():
        legal = {fed for fed, answer in zip(FED, row.split(), strict=True) if answer == "y"}
        assert legal == set(LEGAL[trained])


@pytest.mark.parametrize(("trained", "fed"), [*itertools.product(LEGAL, FED)])
def test_a_pair_is_legal_or_one_error_that_names_the_legal_ones(trained, fed):
    given = Input(type=trained, fed_type=fed)
    if fed in LEGAL[trained]:
        assert feeding("x", given, shape(trained)).offset == (0 if fed == "featuremap" else 128)
        return
    with pytest.raises(ProjectError, match=f"trained on {trained} cannot be fed {fed}") as caught:
        feeding("x", given, shape(trained))
    assert caught.value.where == Route("inputs.x.fed_type")
    assert caught.value.hint.endswith(", ".join(LEGAL[trained]))


@pytest.mark.parametrize(("trained", "kind"), [*itertools.product(LEGAL, [*PICTURES, "float32"])])
def test_a_camera_is_legal_or_one_error(trained, kind):
    given = Input(type=trained, preprocess=CameraPreprocess(kind))
    if kind == "float32" or trained in PICTURES[kind][0]:
        assert feeding("x", given, shape(trained)).offset == (0 if kind == "float32" else 128)
        return
    with pytest.raises(ProjectError, match=f"trained on {trained} cannot be fed {kind}") as caught:
        feeding("x", given, shape(trained))
    assert caught.value.where == Route("inputs.x.preprocess.type")


def test_without_a_word_an_input_is_a_feature_map_fed_as_it_is():
    fed = feeding("x", Input(), (2, 5))
    assert (fed.channels, fed.offset, fed.is_as_trained) == ("", 0, True)
    assert feeding("x", Input(offset=128), (2, 5)).offset == 128


@pytest.mark.parametrize(
    ("given", "of", "route", "what"),
    [
        (Input(type="rgb", fed_type="nv12"), (1, 3, 7, 8), "fed_type", "7 x 8 has odd sides"),
        (Input(type="rgb", fed_type="yuv444"), (1, 3, 8, 7), "fed_type", "odd sides"),
        (Input(type="yuv444"), (1, 3, 8, 7), "fed_type", "odd sides"),
        (Input(preprocess=CameraPreprocess("nv12")), (1, 3, 7, 8), "preprocess", "odd sides"),
        (Input(preprocess=CameraPreprocess("nv21", (9, 8))), (1, 3, 8, 8), "preprocess", "9 x 8"),
        (Input(type="rgb"), (1, 8, 8, 3), "type", r"3 channels in NCHW does not fit"),
        (Input(type="gray"), (1, 3, 8, 8), "type", "1 channel in NCHW does not fit"),
        (Input(type="rgb"), (3, 8, 8), "type", "does not fit"),
        (Input(preprocess=CameraPreprocess("rgb")), (1, 3), "preprocess", "does not fit"),
        (
            Input(type="rgb", color_range="video"),
            (1, 3, 8, 8),
            "color_range",
            "without a conversion of YUV",
        ),
        (
            Input(type="yuv444", color_range="video"),
            (1, 3, 8, 8),
            "color_range",
            "without a conversion of YUV",
        ),
        (Input(color_range="video"), (4,), "color_range", "without a conversion of YUV"),
        (
            Input(fed_type="bgr", preprocess=CameraPreprocess("rgb")),
            (1, 3, 8, 8),
            "fed_type",
            "beside",
        ),
        (
            Input(fed_layout="NHWC", preprocess=CameraPreprocess("float32")),
            (4,),
            "fed_layout",
            "beside",
        ),
        (
            Input(preprocess=CameraPreprocess("float32", crop=True)),
            (4,),
            "preprocess",
            "not a picture",
        ),
        (
            Input(preprocess=CameraPreprocess("rgb", (8,))),
            (1, 3, 8, 8),
            "preprocess.size",
            "1 numbers",
        ),
        (Input(batch=2), (2, 3), "batch", "first dimension is 2"),
        (Input(batch=2), (), "batch", "first dimension is missing"),
    ],
)
def test_each_broken_rule_is_one_error_at_its_key(given, of, route, what):
    with pytest.raises(ProjectError, match=what) as caught:
        feeding("x", given, of)
    assert caught.value.where == Route(f"inputs.x.{route}")


@pytest.mark.parametrize("of", [(1, 3, 7, 9)])
def test_odd_sides_are_fine_where_no_colour_is_halved(of):
    for kind in ("rgb", "bgra", "yuv444", "rgb888p", "rgb888p3"):
        assert feeding("x", Input(preprocess=CameraPreprocess(kind)), of).fed_size == (7, 9)
    assert feeding("x", Input(type="bgr", fed_type="rgb"), of).fed_size == (7, 9)


def test_planes_and_the_crop_are_named_after_the_input():
    given = Input(preprocess=CameraPreprocess("nv21", crop=True))
    assert feeding("image", given, (1, 3, 8, 8)).inputs("image") == (
        "image_y8",
        "image_vu8",
        "image_crop_width",
        "image_crop_height",
        "image_crop_left",
        "image_crop_top",
    )


@pytest.mark.parametrize("scale", [0.0, (0.5, 0.0, 0.5)])
def test_a_scale_of_0_makes_all_samples_equal_and_is_an_error(scale):
    with pytest.raises(ProjectError, match="`scale` cannot be 0") as caught:
        feeding("x", Input(type="rgb", scale=scale), shape("rgb"))
    assert caught.value.where == Route("inputs.x.scale")
