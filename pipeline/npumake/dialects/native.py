"""Builder of a native document; each value keeps its position in the vendor's file."""

from __future__ import annotations

from dataclasses import dataclass, field

from npumake.digest import Json
from npumake.project.document import Document, Route, RoutePlace
from npumake.project.expand import routes

NOISE_SAMPLES = 8  # enough to time a model


@dataclass(frozen=True)
class Native:
    """Builds a native document; `top` is the vendor's."""

    top: Document
    data: dict[str, Json] = field(default_factory=dict)
    places: dict[Route, RoutePlace] = field(default_factory=dict)

    def put(self, route: tuple[str, ...], value: Json, spot: RoutePlace) -> None:
        """Sets `value` at `route`, creating the mappings on the way; errors point to `spot`."""
        inside = self.data
        for depth, name in enumerate(route[:-1]):
            inside = inside.setdefault(name, {})
            self.places.setdefault(route[: depth + 1], RoutePlace(spot.key, spot.key))
        inside[route[-1]] = value
        self.places.update({(*route, *below): spot for below in routes(value)})

    def document(self) -> Document:
        places = {(): self.top.places[()], **self.places}
        return Document(self.top.path, self.data, {r: places[r] for r in routes(self.data)})
