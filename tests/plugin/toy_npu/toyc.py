"""The YAML of the tool toyc → the native document:  {network: net.toy, scale: 0.5}."""

from __future__ import annotations

from pathlib import PurePosixPath

from npumake.dialects.native import NOISE_SAMPLES, Native
from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.project.document import Document
from npumake.project.vendor import Dialect, Note

KEYS = ("network", "scale")


def translate(document: Document, base: str = "", _beside: Json = None) -> Document:
    for key in document.data:
        if key not in KEYS:
            place = document.places[key,].key
            raise ProjectError(f"toyc has no `{key}`", place, f"known: {', '.join(KEYS)}")
    native, top = Native(document), document.places[()]
    path = PurePosixPath(base, document.data["network"]).as_posix()
    native.put(("model", "path"), path, document.places["network",])
    native.put(("targets",), ["toy-npu"], top)
    native.put(("data", "image", "random"), NOISE_SAMPLES, top)
    if "scale" in document.data:
        scale = document.data["scale"]
        native.put(("inputs", "image", "scale"), scale, document.places["scale",])
    return native.document()


def notes(_: Document) -> tuple[Note, ...]:
    return ()


TOYC = Dialect(translate, notes)
