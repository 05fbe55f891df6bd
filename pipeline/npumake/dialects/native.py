"""A native document in the making: every value is placed where the vendor wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field

from npumake.digest import Json
from npumake.project.document import Document, Route, RoutePlace
from npumake.project.expand import routes

RANDOM = 8  # samples of noise, which are enough for timing


@dataclass(frozen=True)
class Native:
    """A native document in the making. Whatever is put is placed where the vendor wrote it."""

    top: Document
    data: dict[str, Json] = field(default_factory=dict)
    places: dict[Route, RoutePlace] = field(default_factory=dict)

    def put(self, route: tuple[str, ...], value: Json, spot: RoutePlace) -> None:
        """`value` at `route`, a way of mappings that is made where it is not there yet."""
        inside = self.data
        for depth, name in enumerate(route[:-1]):
            inside = inside.setdefault(name, {})
            self.places.setdefault(route[: depth + 1], RoutePlace(spot.key, spot.key))
        inside[route[-1]] = value
        self.places.update({(*route, *below): spot for below in routes(value)})

    def document(self) -> Document:
        places = {(): self.top.places[()], **self.places}
        return Document(self.top.path, self.data, {r: places[r] for r in routes(self.data)})
