"""A recognizer's result: how the model is fed, and what its outputs mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from npumake.digest import Json
from npumake.recognition.facts import ModelFacts
from npumake.recognition.feeds import Colors, PictureFeed, PixelNormalization, feed

Task = Literal["classify", "detect", "segment", "other"]


class Step(NamedTuple):
    """One of `transforms:`, with its arguments."""

    name: str
    arguments: Mapping[str, Json] = {}

    @property
    def document(self) -> Json:
        return {self.name: dict(self.arguments)} if self.arguments else self.name

    @property
    def yaml(self) -> str:
        pairs = ", ".join(f"{key}: {value}" for key, value in self.arguments.items())
        return f"{self.name}: {{{pairs}}}" if pairs else self.name


@dataclass(frozen=True)
class SsdDetector:
    """The keys of `evaluation.ssd`, as YAML; empty for decoded boxes."""

    yaml: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """A family of models.

    `feeds`: those its models are trained with, the most common first. `resize`: the transforms.
    `metadata`: an edgefirst.json of its outputs. `doubts`: what the file leaves open.
    `is_declared`: the file states the first of `feeds` itself.
    """

    evidence: str
    feeds: tuple[PictureFeed, ...]
    task: Task = "other"
    resize: tuple[Step, ...] = ()
    labels: tuple[str, ...] = ()
    metadata: Json = None
    split: bool = False
    ssd: SsdDetector | None = None
    label_offset: int = 0
    doubts: tuple[str, ...] = ()
    is_declared: bool = False


class DeclaredFeed(NamedTuple):
    """The normalization that the file states. `sets_color`: it states the color order too."""

    feed: PictureFeed
    evidence: str
    sets_color: bool = False


class Recognizer(NamedTuple):
    name: str
    recognize: Callable[[ModelFacts], Family | None]


STRETCH = (Step("pil_resize"),)
LETTERBOX = (Step("pad_resize", {"pad_value": 114}),)
CORNER_LETTERBOX = (Step("pad_resize", {"pad_value": 114, "pad_position": "bottom_right"}),)


def feeds_of(
    facts: ModelFacts, colors: Colors, *normalizations: PixelNormalization
) -> tuple[PictureFeed, ...]:
    """A feed of the picture for each normalization."""
    return tuple(
        feed(normalization, colors, facts.image.channels) for normalization in normalizations
    )


def center(short_side: int) -> tuple[Step, ...]:
    """Shrinks the short side to `short_side` pixels, then takes the middle."""
    return Step("short_side_resize", {"short_size": short_side}), Step("center_crop")
