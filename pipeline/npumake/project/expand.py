"""Expands one document into the project, its variants and the overlays of its targets.

    base ⊕ overlay: mappings merge key by key, other values replace

A merged document keeps the place of every key, so that errors point into the overlay. `matrix:` is
short for one overlay per combination of its values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import reduce
from itertools import product
from math import prod

from npumake.digest import Json
from npumake.errors import Place, ProjectError
from npumake.project.document import MAX_VALUES, Document, Route, RoutePlace
from npumake.project.events import refuse_depth

NAME = re.compile(r"[A-Za-z0-9_.-]+")

MAX_VARIANTS = 256
MAX_NAME_LENGTH = 100  # characters: it becomes a folder
OVERLAYS = ("variants", "matrix")  # the sections that define overlays
TOP_LEVEL_ONLY = (*OVERLAYS, "dialect", "config")  # not allowed in overlays


def merged(base: Document, overlay: Document) -> Document:
    """base ⊕ overlay, each route with the place of its value."""
    data = _merged(base.data, overlay.data)
    places = {
        route: overlay.places[route] if route in overlay.places else base.places[route]
        for route in routes(data)
    }
    return Document(base.path, data, places)


def variants(document: Document) -> dict[str, Document]:
    """The complete document of every variant by name: first `variants:`, then `matrix:`.

    Raises ProjectError for a name that is in use or no valid folder name, and for more than
    MAX_VARIANTS variants.
    """
    base = without(document, OVERLAYS)
    documents: dict[str, Document] = {}
    for name, overlay, place in (*_named(document), *_combined(document, base)):
        if not NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
            hint = f"at most {MAX_NAME_LENGTH} letters, digits, `_`, `.` and `-`"
            raise ProjectError(f"`{name[:MAX_NAME_LENGTH]}` cannot name a variant", place, hint)
        if name in documents:
            hint = "give one of them another name, under `variants:`"
            raise ProjectError(f"two variants are called `{name}`", place, hint)
        if len(documents) == MAX_VARIANTS or len(documents) * len(base.places) > MAX_VALUES:
            raise ProjectError(f"too many variants: at most {MAX_VARIANTS}", place)
        documents[name] = merged(base, overlay)
    return documents


def targets(document: Document) -> dict[str, Document | None]:
    """The overlay of each target, in order; None without one.

    Raises ProjectError for a target that is listed twice.
    """
    overlays: dict[str, Document | None] = {}
    for index, entry in enumerate(document.data["targets"]):
        place = document.places["targets", index].value
        name = entry if isinstance(entry, str) else next(iter(entry))
        if name in overlays:
            raise ProjectError(f"target `{name}` is listed twice", place)
        overlays[name] = None if entry is name else _below(document, ("targets", index, name))
    return overlays


def _named(document: Document) -> Iterator[tuple[str, Document, Place]]:
    for name in document.data.get("variants", {}):
        route = ("variants", name)
        yield name, _below(document, route), document.places[route].key


def _combined(document: Document, base: Document) -> Iterator[tuple[str, Document, Place]]:
    """One overlay per combination, named for its values; the last key varies fastest."""
    matrix = document.data.get("matrix", {})
    if not matrix:
        return
    place = document.places["matrix",].key
    for key, values in matrix.items():
        if not values:
            raise ProjectError(f"`matrix.{key}` has no values", document.places["matrix", key].key)
        if key in ("dialect", "config"):
            raise ProjectError(f"`{key}` cannot vary", document.places["matrix", key].key)
    if prod(len(values) for values in matrix.values()) > MAX_VARIANTS:
        raise ProjectError(f"too many combinations: at most {MAX_VARIANTS}", place)
    axes = [[_choice(document, base, key, n) for n in range(len(matrix[key]))] for key in matrix]
    for chosen in product(*axes):
        name = "-".join(spelling for spelling, _ in chosen)
        yield name, reduce(merged, [overlay for _, overlay in chosen]), place


def _choice(document: Document, base: Document, key: str, index: int) -> tuple[str, Document]:
    """One value of one key of the matrix: its part of the name, and its overlay."""
    at: Route = ("matrix", key, index)
    value, head = _below(document, at), document.places["matrix", key].key
    if isinstance(value.data, dict):
        hint = "write it under `variants:`, which gives it one"
        raise ProjectError("a mapping has no short name", document.places[at].value, hint)
    refuse_depth(key.count(".") + 1, head)
    route = _route(key, base.data)
    data = reduce(lambda inner, part: {part: inner}, reversed(route), value.data)
    above = {route[:depth]: RoutePlace(head, head) for depth in range(len(route))}
    below = {(*route, *inner): spot for inner, spot in value.places.items()}
    below[route] = RoutePlace(head, below[route].value)
    return _spelled(value.data), Document(document.path, data, above | below)


def _route(key: str, data: Json) -> tuple[str, ...]:
    """The route of a dotted key; names in `data` may contain dots themselves."""
    mapping = data if isinstance(data, dict) else {}
    starts = [name for name in mapping if key == name or key.startswith(f"{name}.")]
    head = max(starts, key=len, default=key.partition(".")[0])
    rest = key[len(head) + 1 :]
    return (head, *_route(rest, mapping.get(head))) if rest else (head,)


def _spelled(value: Json) -> str:
    """A value as a part of a name: `max_percentile`, `0.999`, `1_3_224_224`."""
    if isinstance(value, list):
        return "_".join(map(_spelled, value))
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)


def _below(document: Document, top: Route) -> Document:
    """The part below `top` as a document of its own."""
    data = document.data
    for part in top:
        data = data[part]
    places = {route: document.places[*top, *route] for route in routes(data)}
    return Document(document.path, data, places)


def without(document: Document, sections: tuple[str, ...]) -> Document:
    """The document without these sections."""
    data = {key: value for key, value in document.data.items() if key not in sections}
    return Document(document.path, data, {r: document.places[r] for r in routes(data)})


def _merged(base: Json, overlay: Json) -> Json:
    if not isinstance(base, dict) or not isinstance(overlay, dict):
        return overlay
    joined = {
        key: _merged(base[key], overlay[key]) if key in overlay else base[key] for key in base
    }
    return joined | {key: value for key, value in overlay.items() if key not in base}


def routes(data: Json, route: Route = ()) -> Iterator[Route]:
    """Every route in `data`, parents first."""
    yield route
    keys = range(len(data)) if isinstance(data, list) else data if isinstance(data, dict) else ()
    for key in keys:
        yield from routes(data[key], (*route, key))
