"""quant_config as a tree of values with their places in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npumake.dialects.vendor_yaml import VendorYaml
from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean
from npumake.project.document import Document, Route, RoutePlace

CONFIG_KEY = "calibration_parameters.quant_config"
CONFIG_ROUTE: Route = ("calibration_parameters", "quant_config")


@dataclass(frozen=True)
class ConfigEntry:
    """The value of a document at `route`, its keys and list indices."""

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
        """The value of the key `name`; None if it is absent."""
        return next((entry for entry in self.children() if entry.name == name), None)

    def children(self) -> Iterator[ConfigEntry]:
        """The non-empty values of a mapping. Raises ProjectError for any other value."""
        if self.value is not None and not isinstance(self.value, dict):
            raise self.error(f"`{self.name}` must be a mapping")
        for name, value in (self.value or {}).items():
            if value is not None:
                yield ConfigEntry(self.document, (*self.route, name), value)

    def descendants(self) -> Iterator[ConfigEntry]:
        """This value and all below it; a list counts as one value."""
        yield self
        for entry in self.children() if isinstance(self.value, dict) else ():
            yield from entry.descendants()

    def one_of(self, allowed: Sequence[str]) -> str:
        """The value. Raises ProjectError unless it is allowed."""
        if not isinstance(self.value, str) or self.value not in allowed:
            hint = "allowed: " + ", ".join(allowed)
            raise self.error(f"`{self.name}` cannot be `{self.value}`", hint)
        return self.value

    def error(self, what: str, hint: str = "") -> ProjectError:
        return ProjectError(what, self.spot.value, hint)

    def unknown(self, kind: str, choices: Sequence[str]) -> ProjectError:
        """The error for an unknown key, or another `kind` of name."""
        message = f"unknown {kind} `{self.name}`"
        return ProjectError(message, self.spot.key, did_you_mean(self.name, choices))


def quant_config(vendor: VendorYaml) -> ConfigEntry | None:
    """The mapping `quant_config`; None if it is absent. Raises ProjectError for any other value."""
    value = vendor.raw_value(CONFIG_KEY)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise vendor.error(CONFIG_KEY, "`quant_config` must be a mapping, or name a JSON file")
    return ConfigEntry(vendor.document, CONFIG_ROUTE, value)
