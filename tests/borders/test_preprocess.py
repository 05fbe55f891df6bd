"""Preprocessing: what is fed becomes what the model was trained on, as OpenCV has it."""

import cv2
import numpy as np
import pytest

from npumake.borders.preprocess import put_in_front
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError, Route
from npumake.graph import dtype, parse_text, shape
from npumake.project.feeding import LEGAL, feeding
from npumake.project.sections import CameraPreprocess, Input

H, W = 6, 8
MEAN, SCALE = (10.0, 20.0, 30.0), (0.5, 0.25, 2.0)
rng = np.random.default_rng(1)
# Neither dark nor bright nor vivid: what YUV can hold without clipping.
RGB = rng.integers(90, 160, (1, H, W, 3), np.uint8)
TO = {
    "rgb": lambda rgb: rgb,
    "bgr": lambda rgb: rgb[..., ::-1],
    "gray": lambda rgb: cv2.cvtColor(rgb[0], cv2.COLOR_RGB2GRAY)[None, ..., None],
    "yuv444": lambda rgb: cv2.cvtColor(rgb[0], cv2.COLOR_RGB2YCrCb)[None][..., [0, 2, 1]],
}
TO["nv12"] = TO["yuv444"]  # upsampled by the chip
BACK = {"rgb": cv2.COLOR_YCrCb2RGB, "bgr": cv2.COLOR_YCrCb2BGR}


def laid_out(picture, layout):
    return picture if layout == "NHWC" else np.ascontiguousarray(picture.transpose(0, 3, 1, 2))


def fed_graph(given, size=(H, W), channels=3, kind="float"):
    dims = {"N": 1, "C": channels, "H": size[0], "W": size[1]}
    text = ",".join(str(dims[letter]) for letter in given.layout)
    graph = parse_text(f"agraph ({kind}[{text}] x) => ({kind}[{text}] y) {{ y = Identity(x) }}")
    (value,) = graph.inputs
    put_in_front(graph, value, feeding("x", given, shape(value)), given.mean, given.scale)
    return graph.with_shapes()


def run(graph, *planes, **crop):
    """Codes plane by plane; the result with the channels last."""
    names = [str(value.name) for value in graph.inputs]
    feeds = {
        name: np.float32(codes) - 128 for name, codes in zip(names, planes, strict=len(crop) == 0)
    }
    feeds |= {f"x_crop_{side}": np.array([at], np.int32) for side, at in crop.items()}
    (made,) = OrtSession(graph.to_bytes()).run(None, feeds)
    return made


PAIRS = [
    (trained, fed, layout, fed_layout)
    for trained, legal in LEGAL.items()
    for fed in legal
    for layout in ("NCHW", "NHWC")
    for fed_layout in ("NCHW", "NHWC")
    if trained != "featuremap"
]


@pytest.mark.parametrize(("trained", "fed", "layout", "fed_layout"), PAIRS)
def test_every_legal_pair_gives_what_the_model_was_trained_on(trained, fed, layout, fed_layout):
    channels = 1 if trained == "gray" else 3
    mean, scale = np.array(MEAN[:channels]), np.array(SCALE[:channels])
    given = Input(
        layout=layout,
        fed_layout=fed_layout,
        type=trained,
        fed_type=fed,
        mean=tuple(mean),
        scale=tuple(scale),
    )
    codes = TO[fed](RGB)
    wanted = TO[trained](RGB)
    if trained in BACK and fed in ("yuv444", "nv12"):
        wanted = cv2.cvtColor(codes[0][..., [0, 2, 1]], BACK[trained])[None]
    made = run(fed_graph(given, channels=channels), laid_out(codes, fed_layout))
    pixels = (made if layout == "NHWC" else made.transpose(0, 2, 3, 1)) / scale + mean
    computes = trained in BACK and fed in ("yuv444", "nv12")
    assert np.abs(pixels - wanted).max() <= (1 if computes else 1e-4)


@pytest.mark.parametrize("trained", ["rgb", "bgr"])
@pytest.mark.parametrize("fed", LEGAL["rgb"])
def test_in_nchw_colour_and_norm_are_one_convolution(trained, fed):
    graph = fed_graph(Input(type=trained, fed_type=fed, mean=MEAN, scale=SCALE))
    assert [node.op_type for node in graph.nodes()] == ["Conv", "Identity"]
    graph = fed_graph(Input(type=trained, fed_type=fed, fed_layout="NHWC", mean=MEAN))
    assert [node.op_type for node in graph.nodes()] == ["Transpose", "Conv", "Identity"]


def test_a_feature_map_is_only_laid_out():
    graph = fed_graph(Input(fed_layout="NHWC"))
    assert [node.op_type for node in graph.nodes()] == ["Transpose", "Identity"]
    codes = RGB.astype(np.float32)
    (made,) = OrtSession(graph.to_bytes()).run(None, {"x": codes})
    np.testing.assert_array_equal(made, codes.transpose(0, 3, 1, 2))


def planes_of(kind, rgb):
    """What a camera gives for `rgb` (H, W, 3) in BT.601 video range, by OpenCV; and its RGB."""
    h, w = rgb.shape[:2]
    i420 = cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420)
    y, u, v = np.split(i420.reshape(-1), [h * w, h * w * 5 // 4])
    y, u, v = (
        y.reshape(1, h, w, 1),
        u.reshape(1, h // 2, w // 2, 1),
        v.reshape(1, h // 2, w // 2, 1),
    )
    back = cv2.cvtColor(i420, cv2.COLOR_YUV2RGB_I420)
    full = [plane.repeat(2, 1).repeat(2, 2) for plane in (u, v)]
    alpha = np.full((1, h, w, 1), 77, np.uint8)
    r, g, b = (rgb[None, ..., [channel]] for channel in range(3))
    return {
        "yuv444": ((y, *full), back),
        "yuv420": ((y, u, v), back),
        "nv12": ((y, np.concatenate([u, v], 3)), back),
        "nv21": ((y, np.concatenate([v, u], 3)), back),
        "rgb": ((rgb[None],), rgb),
        "bgra": ((np.concatenate([b, g, r, alpha], 3),), rgb),
        "rgb888p": ((rgb[None].transpose(0, 3, 1, 2),), rgb),
        "rgb888p3": ((r, g, b), rgb),
    }[kind]


CAMERAS = ("yuv444", "yuv420", "nv12", "nv21", "rgb", "bgra", "rgb888p", "rgb888p3")


def camera(kind, layout="NCHW", trained="rgb", **more):
    video = "video" if kind[0] in "yn" else "full"
    preprocess = CameraPreprocess(kind, **more)
    return Input(layout=layout, type=trained, color_range=video, preprocess=preprocess, scale=0.5)


def pixels_of(made, given):
    codes = 2 * (made if given.layout == "NHWC" else made.transpose(0, 2, 3, 1))[0]
    return codes if given.type == "rgb" else codes[..., ::-1]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("trained", ["rgb", "bgr"])
@pytest.mark.parametrize("kind", CAMERAS)
def test_the_planes_of_a_camera_become_one_picture(kind, trained, layout):
    planes, wanted = planes_of(kind, RGB[0])
    given = camera(kind, layout, trained)
    assert np.abs(pixels_of(run(fed_graph(given), *planes), given) - wanted).max() <= 1


def test_a_gray_camera_feeds_a_model_of_one_channel():
    given = Input(layout="NCHW", preprocess=CameraPreprocess("gray"), type="gray", mean=3.0)
    made = run(fed_graph(given, channels=1), RGB[..., :1])
    np.testing.assert_allclose(made[0, 0], RGB[0, ..., 0] - 3.0, atol=1e-4)


def smooth(h, w):
    """A picture whose resampling is not all noise; OpenCV rounds its weights to 1/2048."""
    return cv2.GaussianBlur(rng.integers(60, 190, (h, w, 3), np.uint8), (5, 5), 0)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("size", [(12, 20), (6, 4), (24, 16)])
def test_a_picture_of_another_size_is_resized_as_opencv_does(kind, layout, size):
    planes, decoded = planes_of(kind, smooth(*size))
    given = camera(kind, layout, size=size)
    wanted = cv2.resize(decoded, (W, H), interpolation=cv2.INTER_LINEAR)
    assert np.abs(pixels_of(run(fed_graph(given), *planes), given) - wanted).max() <= 2


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", CAMERAS)
@pytest.mark.parametrize("box", [(20, 12, 0, 0), (8, 6, 5, 3), (5, 4, 15, 8), (13, 9, 2, 1)])
def test_a_crop_is_cut_out_and_resized(kind, layout, box):
    width, height, left, top = box
    planes, decoded = planes_of(kind, smooth(12, 20))
    given = camera(kind, layout, size=(12, 20), crop=True)
    crop = dict(zip(("width", "height", "left", "top"), box, strict=True))
    inside = decoded[top : top + height, left : left + width]
    wanted = cv2.resize(inside, (W, H), interpolation=cv2.INTER_LINEAR)
    # A crop is rounded to codes of what is fed, and a code of U is two of blue.
    tolerance = 4 if given.color_range == "video" else 2
    made = pixels_of(run(fed_graph(given), *planes, **crop), given)
    assert np.abs(made - wanted).max() <= tolerance


def test_a_crop_of_the_models_size_is_exact_and_ignores_its_surroundings():
    picture = smooth(12, 20)[None]
    given = camera("rgb", size=(12, 20), crop=True)
    graph = fed_graph(given)
    crop = {"width": W, "height": H, "left": 5, "top": 3}
    before = run(graph, picture, **crop)
    np.testing.assert_array_equal(pixels_of(before, given), picture[0, 3 : 3 + H, 5 : 5 + W])
    outside = np.full_like(picture, 255)
    outside[:, 3 : 3 + H, 5 : 5 + W] = picture[:, 3 : 3 + H, 5 : 5 + W]
    np.testing.assert_array_equal(run(graph, outside, **crop), before)


def test_a_crop_beyond_the_picture_repeats_its_edge():
    picture = smooth(12, 20)[None]
    given = camera("rgb", size=(12, 20), crop=True)
    made = run(fed_graph(given), picture, width=W, height=H, left=19, top=11)
    assert np.unique(pixels_of(made, given).reshape(-1, 3), axis=0).tolist() == [
        picture[0, 11, 19].tolist()
    ]


def test_a_model_of_bytes_gets_bytes():
    given = Input(type="rgb", fed_type="yuv444")
    graph = fed_graph(given, kind="uint8")
    assert [dtype(value) for value in graph.inputs] == ["float32"]
    vivid = rng.integers(0, 256, (1, H, W, 3), np.uint8)
    made = run(graph, laid_out(vivid, "NCHW")).transpose(0, 2, 3, 1)
    wanted = cv2.cvtColor(vivid[0][..., [0, 2, 1]], cv2.COLOR_YCrCb2RGB)
    assert made.dtype == np.uint8
    assert np.abs(made[0].astype(int) - wanted).max() <= 1


def test_every_shape_stays_static():
    for kind in CAMERAS:
        graph = fed_graph(camera(kind, size=(12, 20), crop=True))
        for node in graph.nodes():
            assert all(shape(value) is not None for value in node.outputs)


def test_a_plane_whose_name_is_taken_is_an_error():
    text = "agraph (float[1,3,2,2] x, float[1] x_y8) => (float[1,3,2,2] y) { y = Add(x, x_y8) }"
    graph = parse_text(text)
    fed = feeding("x", Input(preprocess=CameraPreprocess("nv12")), (1, 3, 2, 2))
    with pytest.raises(ProjectError, match="already has a tensor `x_y8`") as caught:
        put_in_front(graph, graph.inputs[0], fed, 0.0, 1.0)
    assert caught.value.where == Route("inputs.x.preprocess")
