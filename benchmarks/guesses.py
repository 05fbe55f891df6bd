"""Checks the proposals of `npumake new --images` for each shared model.

    python benchmarks/guesses.py [--model NAME]

For each model it compares layout, color order, mean and scale with the truth, from the sources of
the model. A wrong proposal may at least be marked as not sure. Classifiers get ImageNet's pictures,
the digits MNIST's, all others COCO's. A model without a picture input is right if it is refused.

Mean and scale are right within 2 % of the range of the normalized pixels.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from npumake.cli.model_file import held_files
from npumake.cli.pictures import picture_files, surveyed
from npumake.errors import GraphError, ProjectError
from npumake.frontends import read_model
from npumake.recognition.feeds import TOLERANCE, PictureFeed

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
PICTURES = 50


class Truth(NamedTuple):
    """`mean` and `scale` in the order of the channels."""

    layout: str
    colors: str
    mean: Sequence[float]
    scale: Sequence[float]


UNIT, SIGNED, RAW = ([0.0], [1 / 255]), ([127.5], [1 / 127.5]), ([0.0], [1.0])
CAFFE = ([103.939, 116.779, 123.68], [1.0])
# None: the model takes no picture.
TRUTHS: dict[str, Truth | None] = {
    "squeezenet1.1_winml_fp16": Truth("NCHW", "bgr", *CAFFE),
    "squeezenet1.1_winml_fp32_DERIVED": Truth("NCHW", "bgr", *CAFFE),
    "mobilenet_v1_0.25_224_float": Truth("NHWC", "rgb", *SIGNED),
    "mobilenet_v1_0.25_224_quant": Truth("NHWC", "rgb", [128.0], [1 / 128]),
    "mnist_cntk": Truth("NCHW", "gray", *RAW),
    "cifar10_resnet8_float": Truth("NHWC", "rgb", *RAW),
    "cifar10_resnet8_int8": Truth("NHWC", "rgb", *RAW),
    "vww_96_float": Truth("NHWC", "rgb", *UNIT),
    "vww_96_int8": Truth("NHWC", "rgb", *UNIT),
    "ultraface_slim320": Truth("NCHW", "rgb", [127.0], [1 / 128]),
    "ultraface_slim320_rawhead": Truth("NCHW", "rgb", [127.0], [1 / 128]),
    "caffe_ultraface_slim320": Truth("NCHW", "rgb", [127.0], [1 / 128]),
    "yunet_n_320_320": Truth("NCHW", "bgr", *RAW),
    "yolox_person_192": Truth("NCHW", "bgr", *RAW),
    "fastestdet_352": Truth("NCHW", "bgr", *UNIT),
    "caffe_mtcnn_det1": Truth("NCHW", "rgb", [127.5], [1 / 128]),
    "caffe_mtcnn_det2": Truth("NCHW", "rgb", [127.5], [1 / 128]),
    "deeplabv3_mnv2_257": Truth("NHWC", "rgb", *SIGNED),
    "ESPCN_x2": Truth("NHWC", "gray", *UNIT),
    "ppocr_mobile_v2_cls": Truth("NCHW", "bgr", *SIGNED),
    "sscma_yolov5tiny_face_96": Truth("NCHW", "rgb", *UNIT),
    "silero_vad_16k_op15": None,
    "kws_arm_DS_CNN_S": None,
    "kws_tiny_float": None,
    "kws_tiny_int8": None,
    "ad01_fp32": None,
}


class Guess(NamedTuple):
    """`feed` is None for a model that was refused, with the reason as its only doubt."""

    layout: str
    feed: PictureFeed | None
    family: str
    doubts: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.feed.words}, {self.layout}" if self.feed else self.doubts[0]


def guess(file: Path, pictures: Sequence[Path]) -> Guess:
    held = held_files(file, None)
    graph = read_model(held.model.read(), file.name, held.weights)
    try:
        found = surveyed(held, graph, pictures)
    except ProjectError as error:
        return Guess("", None, "", (error.what,))
    layout = "NHWC" if found.facts.image.is_nhwc else "NCHW"
    proposal = found.proposal
    return Guess(layout, proposal.feed, proposal.name, proposal.doubts)


def is_right(guessed: Guess, truth: Truth | None) -> bool:
    if truth is None or guessed.feed is None:
        return truth is None and guessed.feed is None
    if (guessed.layout, guessed.feed.colors) != (truth.layout, truth.colors):
        return False
    own, right = (
        _reach(mean, scale) for mean, scale in ((guessed.feed.mean, guessed.feed.scale), truth[2:])
    )
    return bool(np.abs(own - right).max() <= TOLERANCE * np.ptp(right))


def _reach(mean: Sequence[float], scale: Sequence[float]) -> np.ndarray:
    """The values of pixels 0 and 255 in each of three channels."""
    ends = np.array([0.0, 255.0])[:, None]
    return np.broadcast_to((ends - np.array(mean)) * np.array(scale), (2, 3))


def pictures_for(file: Path, digits: Path) -> tuple[Path, ...]:
    if file.stem.startswith("mnist"):
        return tuple(sorted(digits.glob("*.png")))
    folder = "imagenet500" if file.parent.name == "classification" else "coco128"
    found = picture_files(SHARED / "images" / folder).files
    return found[:: max(1, len(found) // PICTURES)][:PICTURES]


def write_digits(folder: Path) -> None:
    """The first test digits as pictures."""
    (source,) = (SHARED / "mnist").glob("*images*")
    pixels = np.frombuffer(gzip.decompress(source.read_bytes()), np.uint8, offset=16)
    for index, digit in enumerate(pixels.reshape(-1, 28, 28)[:PICTURES]):
        Image.fromarray(digit).save(folder / f"{index:03}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", metavar="NAME", help="only models with this in their names")
    wanted = parser.parse_args().model or ""
    files = {f.stem: f for f in sorted((SHARED / "models").rglob("*")) if f.stem in TRUTHS}
    files |= {f.stem: f for f in files.values() if f.suffix == ".caffemodel"}
    right = asked = 0
    with tempfile.TemporaryDirectory() as folder:
        write_digits(Path(folder))
        for name, file in files.items():
            if wanted not in name:
                continue
            file = file.with_suffix(".prototxt") if file.suffix == ".caffemodel" else file
            started = time.perf_counter()
            try:
                guessed = guess(file, pictures_for(file, Path(folder)))
            except GraphError as error:  # a converter that is not installed here
                print(f"-      {name}: {error.what}")
                continue
            asked += 1
            verdict = is_right(guessed, TRUTHS[name])
            right += verdict
            took = time.perf_counter() - started
            mark = "right" if verdict else "unsure" if guessed.doubts else "WRONG"
            print(f"{mark:<6} {name}: {guessed.text} ({guessed.family or 'refused'}) {took:.1f} s")
            for doubt in guessed.doubts if guessed.feed else ():
                print(f"         not sure: {doubt}")
    print(f"{right} of {asked} right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
