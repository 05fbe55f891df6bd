"""Classifiers and networks of frameworks, by names, operators and layout."""

from __future__ import annotations

import re

from npumake.recognition.facts import ModelFacts, classes_of
from npumake.recognition.feeds import CAFFE, CLIP, IMAGENET, RAW, SIGNED, UNIT, PixelNormalization
from npumake.recognition.recognized import STRETCH, Family, Step, center, feeds_of

SMALL_SIDE = 128  # pixels; classifiers of smaller pictures do not crop
CROP_RATIO = 0.875  # of the short side, as ImageNet classifiers are evaluated
WITH_BACKGROUND = 1001  # classes of ImageNet and one more, the first
TF_NAMES = re.compile(r"MobilenetV[123]|Mobilenet/|InceptionV\d|NASNet|resnet_v2", re.IGNORECASE)
TRANSFORMER = frozenset({"LayerNormalization", "Erf", "Gelu"})


def crop(facts: ModelFacts) -> tuple[Step, ...]:
    """The transforms of a classifier: the middle of the picture, or all of a small one."""
    height, width = facts.image.size
    if min(height, width) < SMALL_SIDE or height != width:
        return STRETCH
    return center(round(height / CROP_RATIO))


def tensorflow_slim(facts: ModelFacts) -> Family | None:
    match = TF_NAMES.search(facts.names)
    if match is None or not facts.image.is_nhwc:
        return None
    evidence = f"a network of TensorFlow's model garden: `{match.group(0)}` in its names"
    return _classifier(facts, evidence, SIGNED, UNIT) or Family(
        evidence, feeds_of(facts, "rgb", SIGNED, UNIT), "segment", STRETCH
    )


def caffe(facts: ModelFacts) -> Family | None:
    if facts.suffix != ".prototxt" and "caffe" not in facts.producer.lower():
        return None
    evidence = "made by Caffe, whose models take BGR minus the mean"
    norms = (CAFFE, RAW, UNIT, SIGNED)
    feeds = feeds_of(facts, "bgr", *norms)
    classifier = _classifier(facts, evidence, *norms)
    return Family(
        evidence,
        feeds,
        "classify" if classifier else "other",
        classifier.resize if classifier else STRETCH,
    )


def vision_transformer(facts: ModelFacts) -> Family | None:
    if facts.image.is_nhwc or not facts.operators & TRANSFORMER or not classes_of(facts):
        return None
    evidence = "a vision transformer, by its LayerNormalization or Gelu"
    return _classifier(facts, evidence, IMAGENET, SIGNED, CLIP)


def torch_classifier(facts: ModelFacts) -> Family | None:
    if facts.image.is_nhwc or facts.image.channels != 3:
        return None
    evidence = "a classifier with channels first, as torchvision and timm export it"
    return _classifier(facts, evidence, IMAGENET, UNIT, SIGNED, RAW)


def keras(facts: ModelFacts) -> Family | None:
    if not facts.image.is_nhwc:
        return None
    evidence = "channels last, as Keras exports it"
    return _classifier(facts, evidence, UNIT, SIGNED, RAW, IMAGENET) or Family(
        evidence, feeds_of(facts, "rgb", UNIT, SIGNED, RAW), "other", STRETCH
    )


def _classifier(facts: ModelFacts, evidence: str, *norms: PixelNormalization) -> Family | None:
    """The family, if the one output has a score per class."""
    count = classes_of(facts)
    if not count:
        return None
    offset = int(count == WITH_BACKGROUND)
    return Family(
        evidence, feeds_of(facts, "rgb", *norms), "classify", crop(facts), label_offset=offset
    )
