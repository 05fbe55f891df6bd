"""quant_config, value by value, each with the place where it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npumake.dialects.vendor_yaml import VendorYaml
from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean
from npumake.project.document import Document, Route, RoutePlace

KEY = "calibration_parameters.quant_config"
TOP: Route = ("calibration_parameters", "quant_config")


@dataclass(frozen=True)
class ConfigEntry:
    """A value of a document, reached by the names and numbers of `route`."""

    document: Document
    route: Route
    value: Json

    @property
    def name(self) -> str:
        return str(self.route[-1])

    @property
    def spot(self) -> RoutePlace:
        return self.document.places[self.route]

    def at(self, name: str) -> ConfigEntry | None:
        """What stands under `name` here; None where nothing does."""
        return next((entry for entry in self.inside() if entry.name == name), None)

    def inside(self) -> Iterator[ConfigEntry]:
        """What stands under each name that has a value. Raises ProjectError for no mapping."""
        if self.value is not None and not isinstance(self.value, dict):
            raise self.error(f"`{self.name}` must be a mapping")
        for name, value in (self.value or {}).items():
            if value is not None:
                yield ConfigEntry(self.document, (*self.route, name), value)

    def below(self) -> Iterator[ConfigEntry]:
        """All mappings and values under this one, itself included; lists are values."""
        yield self
        for entry in self.inside() if isinstance(self.value, dict) else ():
            yield from entry.below()

    def one_of(self, allowed: Sequence[str]) -> str:
        """The value. Raises ProjectError for any that is not allowed."""
        if not isinstance(self.value, str) or self.value not in allowed:
            hint = "allowed: " + ", ".join(allowed)
            raise self.error(f"`{self.name}` cannot be `{self.value}`", hint)
        return self.value

    def error(self, what: str, hint: str = "") -> ProjectError:
        return ProjectError(what, self.spot.value, hint)

    def strange(self, kind: str, known: Sequence[str]) -> ProjectError:
        """For a key, or another `kind` of name, that nobody knows."""
        message = f"unknown {kind} `{self.name}`"
        return ProjectError(message, self.spot.key, did_you_mean(self.name, known))


def quant_config(vendor: VendorYaml) -> ConfigEntry | None:
    """The mapping; None where there is none. Raises ProjectError for anything else."""
    found = vendor.given(KEY)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise vendor.error(KEY, "`quant_config` must be a mapping, or name a JSON file")
    return ConfigEntry(vendor.document, TOP, found)
