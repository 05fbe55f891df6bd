"""Resolves how an input is fed: fills in defaults and checks the rules.

LEGAL and PICTURES list which fed types fit which trained types. A picture arrives as planes, each
its own graph input. A plain `fed_type` is one plane with the name of the model's input. The chip's
video unit upsamples nv12, so its one plane is yuv444. The planes of `preprocess` are the camera's.
"""

from __future__ import annotations

from dataclasses import dataclass

from npumake.errors import ProjectError, Route
from npumake.project.sections import CameraPreprocess, Input

# trained on → may be fed
LEGAL: dict[str, tuple[str, ...]] = {
    "rgb": ("rgb", "bgr", "yuv444", "nv12"),
    "bgr": ("rgb", "bgr", "yuv444", "nv12"),
    "yuv444": ("yuv444", "nv12"),
    "gray": ("gray",),
    "featuremap": ("featuremap",),
}
CHANNELS = {
    "rgb": "rgb",
    "bgr": "bgr",
    "gray": "y",
    "yuv444": "yuv",
    "nv12": "yuv",
    "featuremap": "",
}
RECTANGLE = ("width", "height", "left", "top")  # of a crop, in pixels of the picture, in order


@dataclass(frozen=True)
class Plane:
    """One graph input. `tag` is the suffix behind the model input's name, empty for one plane."""

    tag: str
    channels: str  # a letter each; empty for a feature map
    layout: str = "NHWC"
    halved: bool = False  # half the height and half the width
    from_nv12: bool = False  # its chroma was upsampled by the chip


# camera's type → (what the model may be trained on, the default first; planes)
PICTURES: dict[str, tuple[tuple[str, ...], tuple[Plane, ...]]] = {
    "yuv444": (("rgb", "bgr"), (Plane("y8", "y"), Plane("u8", "u"), Plane("v8", "v"))),
    "yuv420": (
        ("rgb", "bgr"),
        (Plane("y8", "y"), Plane("u8", "u", halved=True), Plane("v8", "v", halved=True)),
    ),
    "nv12": (("rgb", "bgr"), (Plane("y8", "y"), Plane("uv8", "uv", halved=True))),
    "nv21": (("rgb", "bgr"), (Plane("y8", "y"), Plane("vu8", "vu", halved=True))),
    "gray": (("gray",), (Plane("", "y"),)),
    "rgb": (("rgb", "bgr"), (Plane("", "rgb"),)),
    "bgra": (("rgb", "bgr"), (Plane("", "bgra"),)),
    "rgb888p": (("rgb", "bgr"), (Plane("", "rgb", "NCHW"),)),
    "rgb888p3": (("rgb", "bgr"), (Plane("r8", "r"), Plane("g8", "g"), Plane("b8", "b"))),
}


@dataclass(frozen=True)
class Feeding:
    """The form in which one model input is fed, defaults filled in. Sizes are (height, width)."""

    shape: tuple[int, ...]  # as trained
    layout: str  # as trained
    channels: str  # as trained, a letter each; empty for a feature map
    planes: tuple[Plane, ...]
    video: bool
    offset: int  # a fed value is the code minus this
    size: tuple[int, int] | None = None  # of the picture; None for the model's own
    crop: bool = False

    def inputs(self, name: str) -> tuple[str, ...]:
        """The graph inputs that feed the model input `name`, in order."""
        planes = (f"{name}_{plane.tag}" if plane.tag else name for plane in self.planes)
        return (*planes, *(f"{name}_crop_{side}" for side in RECTANGLE if self.crop))

    @property
    def is_as_trained(self) -> bool:
        """Whether the fed form equals the trained one, except for the offset."""
        plane = self.planes[0]
        alike = plane == Plane("", self.channels, self.layout)
        return alike and self.size is None and not self.crop

    @property
    def fed_channels(self) -> str:
        """The letters of all planes, concatenated."""
        return "".join(plane.channels for plane in self.planes)

    @property
    def trained_size(self) -> tuple[int, int]:
        """Height and width the model was trained on; only a picture has one."""
        height = self.layout.index("H")
        return self.shape[height], self.shape[height + 1]

    @property
    def fed_size(self) -> tuple[int, int]:
        return self.size or self.trained_size


def feeding(name: str, section: Input, shape: tuple[int, ...]) -> Feeding:
    """The Feeding of the section `inputs.<name>`; `shape` is the trained one.

    Raises ProjectError for types without a conversion, and for a shape that does not fit.
    """
    camera = section.preprocess
    if camera is not None and camera.type != "float32":
        result = _picture(name, section, camera, shape)
    else:
        result = _plain(name, section, shape)
    if result.channels:
        _check_picture(name, section, result)
    if section.color_range == "video" and not _converts(result):
        raise ProjectError(
            "`color_range: video` without a conversion of YUV to RGB",
            Route(f"inputs.{name}.color_range"),
            "it is the range of a YUV picture fed to a model trained on rgb or bgr",
        )
    if 0.0 in (section.scale if isinstance(section.scale, tuple) else (section.scale,)):
        raise ProjectError(
            "`scale` cannot be 0: every sample would be the same", Route(f"inputs.{name}.scale")
        )
    if section.batch > 1 and shape[:1] != (1,):
        raise ProjectError(
            f"a batch for an input whose first dimension is {shape[0] if shape else 'missing'}",
            Route(f"inputs.{name}.batch"),
            "the model must take one image for the compiled file to take several",
        )
    return result


def _plain(name: str, section: Input, shape: tuple[int, ...]) -> Feeding:
    """The Feeding by `fed_type`: one plane of the model's own size."""
    trained = section.type or "featuremap"
    fed_type = section.fed_type or trained
    if section.preprocess is not None:
        _refuse_beside_preprocess(name, section)
        if section.preprocess.size or section.preprocess.crop:
            raise ProjectError(
                "`float32` is not a picture: it has neither `size` nor `crop`",
                Route(f"inputs.{name}.preprocess"),
            )
    if fed_type not in LEGAL[trained]:
        raise _illegal(name, "fed_type", trained, fed_type, LEGAL[trained])
    layout = section.fed_layout or section.layout
    plane = Plane("", CHANNELS[fed_type], layout, from_nv12=fed_type == "nv12")
    default = 128 if CHANNELS[fed_type] and section.preprocess is None else 0
    return Feeding(
        shape,
        section.layout,
        CHANNELS[trained],
        (plane,),
        section.color_range == "video",
        default if section.offset is None else section.offset,
    )


def _picture(
    name: str, section: Input, camera: CameraPreprocess, shape: tuple[int, ...]
) -> Feeding:
    """The Feeding by `preprocess`: the camera's planes, in the camera's size."""
    _refuse_beside_preprocess(name, section)
    allowed, planes = PICTURES[camera.type]
    trained = section.type or allowed[0]
    if trained not in allowed:
        raise _illegal(name, "preprocess.type", trained, camera.type, _cameras(trained))
    if camera.size is not None and len(camera.size) != 2:
        raise ProjectError(
            f"a size of {len(camera.size)} numbers",
            Route(f"inputs.{name}.preprocess.size"),
            "write [height, width]",
        )
    return Feeding(
        shape,
        section.layout,
        CHANNELS[trained],
        planes,
        section.color_range == "video",
        128 if section.offset is None else section.offset,
        None if camera.size is None else (camera.size[0], camera.size[1]),
        camera.crop,
    )


def _cameras(trained: str) -> tuple[str, ...]:
    return (*(kind for kind, (allowed, _) in PICTURES.items() if trained in allowed), "float32")


def _illegal(
    name: str, key: str, trained: str, fed_type: str, legal: tuple[str, ...]
) -> ProjectError:
    return ProjectError(
        f"a model trained on {trained} cannot be fed {fed_type}",
        Route(f"inputs.{name}.{key}"),
        f"trained on {trained} it may be fed: {', '.join(legal)}",
    )


def _refuse_beside_preprocess(name: str, section: Input) -> None:
    for key in ("fed_type", "fed_layout"):
        if getattr(section, key) is not None:
            raise ProjectError(
                f"`{key}` beside `preprocess`, which defines the inputs",
                Route(f"inputs.{name}.{key}"),
                "keep one of them",
            )


def _check_picture(name: str, section: Input, feeding: Feeding) -> None:
    where = Route(f"inputs.{name}.{'type' if section.type else 'preprocess'}")
    count = len(feeding.channels)
    if len(feeding.shape) != 4 or feeding.shape[feeding.layout.index("C")] != count:
        raise ProjectError(
            f"a picture of {count} channel{'s' if count > 1 else ''} in {feeding.layout} does not "
            f"fit the input's shape {list(feeding.shape)}",
            where,
            "see `layout` and `type` under `inputs:`",
        )
    # A chip reads even a plain yuv444 through its video unit.
    blocks = any(plane.halved or plane.channels == "yuv" for plane in feeding.planes)
    if blocks and any(side % 2 for side in feeding.fed_size):
        key = "preprocess" if section.preprocess else "fed_type"
        raise ProjectError(
            f"a picture of {feeding.fed_size[0]} x {feeding.fed_size[1]} has odd sides",
            Route(f"inputs.{name}.{key}"),
            "its color is stored in blocks of 2 x 2 pixels: height and width must be even",
        )


def _converts(feeding: Feeding) -> bool:
    """Whether colors are converted, not only reordered."""
    return bool(set(feeding.channels) - set(feeding.fed_channels))
