"""Why: compares two key documents, the same ones that decide whether a node is current."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from npumake.digest import Json

ABSENT = object()


def differences(
    old: Json, new: Json, places: Mapping[str, str], closure: Callable[[str], Json]
) -> tuple[str, ...]:
    """One line per differing leaf.

    `places` has the positions of YAML keys; `closure` returns the modules behind a code digest, or
    None.
    """
    lines = []
    for route, before, after in _leaves((), old, new):
        if route == ("code",):
            lines.extend(_code(closure(str(before)), closure(str(after))))
        else:
            lines.append(_line(route, before, after, places))
    return tuple(lines)


def _leaves(
    route: tuple[str, ...], old: Json, new: Json
) -> Iterator[tuple[tuple[str, ...], Json, Json]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _leaves((*route, key), old.get(key, ABSENT), new.get(key, ABSENT))
    elif old != new:
        yield route, old, new


def _line(route: tuple[str, ...], before: Json, after: Json, places: Mapping[str, str]) -> str:
    kind, *rest = route
    name = ".".join(rest)
    if kind == "params":
        place = places.get(name)
        where = f"   ({place.rpartition(':')[0]})" if place else ""
        return f"{name}: {_value(before)} → {_value(after)}{where}"
    if kind == "sources":
        return f"{rest[0]} {rest[-1]}: {_content(before, after)}"
    if kind == "inputs":
        return f"{name}: {_content(before, after)}"
    if kind == "tools":
        return f"{name} {_value(before)} → {_value(after)}"
    return f"{'.'.join(route)}: {_value(before)} → {_value(after)}"


def _code(before: Json, after: Json) -> list[str]:
    """The modules whose code differs, when both closures are known."""
    if before is None or after is None:
        return ["the code of the stage changed"]
    modules = [m for m in sorted({*before, *after}) if before.get(m) != after.get(m)]
    return [
        f"code of {module}: {_content(before.get(module, ABSENT), after.get(module, ABSENT))}"
        for module in modules
    ]


def _content(before: Json, after: Json) -> str:
    if before is ABSENT:
        return "added"
    return "removed" if after is ABSENT else "changed"


def _value(value: Json) -> str:
    if value is ABSENT:
        return "nothing"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
