"""Verdict: every gate with what was measured, and for one that is not met who is to blame and what
would mend it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from npumake import digest
from npumake.errors import CacheError

MOST_BLAMED = 3


@dataclass(frozen=True)
class Blamed:
    """A node, what it loses of the cosine (None: it runs on the CPU), and the trained nodes it
    computes."""

    node: str
    lost: float | None
    origin: tuple[str, ...] = ()

    def __str__(self) -> str:
        lost = "on the CPU" if self.lost is None else f"loses {self.lost:.6f}"
        known = ", ".join(name for name in self.origin if name != self.node)
        return f"{self.node}  {lost}" + (f", of {known} in the trained model" if known else "")


@dataclass(frozen=True)
class Mending:
    """YAML that was tried: what its trial came to, without and with it, in what the gate
    counts, and whether that meets it. Trials run in float with Q/DQ: `before` is near what was
    measured, not equal."""

    yaml: str
    before: float
    after: float
    suffices: bool


@dataclass(frozen=True)
class Judged:
    """One gate, and where it is not met the worst three nodes and what helps."""

    index: int
    what: str  # a sentence
    met: bool
    blamed: tuple[Blamed, ...] = ()
    mending: Mending | None = None
    unlike: str = ""  # what the calibration data did not show, where that is to blame

    @property
    def advice(self) -> str:
        """For whoever has to mend it: several lines."""
        if self.unlike:
            hint = "calibrate with data like those that are evaluated: see `data:` and `dataset:`"
            return f"{self.unlike}\n{hint}"
        lines = ["most to blame:", *(f"  {one}" for one in self.blamed)] if self.blamed else []
        if not self.blamed and self.mending is None:
            return "`npumake perf` tells what each layer costs"
        if self.mending is None:
            return "\n".join([*lines, "no promotion of these nodes was found to help"])
        tried = self.mending
        end = "meets the gate" if tried.suffices else "helps; `npumake precision` searches on"
        trial = f"# tried: {_figure(tried.before)} -> {_figure(tried.after)}, {end}"
        return "\n".join(
            [*lines, "write, in place of what `quantization` says now:", trial, tried.yaml.rstrip()]
        )


@dataclass(frozen=True)
class Verdict:
    target: str
    gates: tuple[Judged, ...]

    suffix: ClassVar[str] = ".json"

    @property
    def unmet(self) -> Sequence[Judged]:
        return [gate for gate in self.gates if not gate.met]

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Verdict:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
            return cls(document["target"], tuple(map(_judged, document["gates"])))
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not a verdict: {error}", str(path)) from error


def _judged(document: Any) -> Judged:
    blamed = [
        Blamed(each["node"], each["lost"], tuple(each["origin"])) for each in document["blamed"]
    ]
    mending = document["mending"] and Mending(**document["mending"])
    said = {name: document[name] for name in ("index", "what", "met", "unlike")}
    return Judged(blamed=tuple(blamed), mending=mending, **said)


def _figure(value: float) -> str:
    return f"{value:.6g}"
