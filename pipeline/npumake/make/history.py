"""History: what the records of the store say of earlier builds, and whose they were.

A record names no project. Its chain of inputs ends at files: an earlier build belongs to a build of
today for the same target that shares a file with it, and of several to the one whose settings
differ least. The time is that of the record's file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from npumake import digest
from npumake.cache.inventory import inventory, read_entry
from npumake.cache.local import LocalStore
from npumake.digest import Json
from npumake.make.build import Build
from npumake.make.node import Node

COMPARISON, QUANTIZED = "comparison", "quantized"
RESULTS = (COMPARISON, "compiled_check", "compiled", "evaluation", "verdict")
FILES = "files"  # begins the routes of files among the settings
Settings = Mapping[str, str]


@dataclass(frozen=True)
class StoredResult:
    """A record: its key, document, artifact and size in bytes, and the time of its file."""

    key: str
    document: Json
    digest: str
    size: int
    time_ns: int

    @property
    def stage(self) -> str:
        return str(self.document["stage"])


@dataclass(frozen=True)
class PastBuild:
    """A build of one target: its results by stage, and the settings and files behind it."""

    results: Mapping[str, StoredResult]
    settings: Settings

    @property
    def key(self) -> str:
        return self.results[COMPARISON].key

    @property
    def time_ns(self) -> int:
        return self.results[COMPARISON].time_ns


@dataclass(frozen=True)
class History:
    """All records of a store."""

    results: Sequence[StoredResult]

    @cached_property
    def by_artifact(self) -> Mapping[tuple[str, str], StoredResult]:
        """By stage and digest; the last one where several made the same bytes."""
        return {(result.stage, result.digest): result for result in self.results}

    @cached_property
    def builds(self) -> Sequence[PastBuild]:
        """One for each comparison, the earliest first."""
        later: dict[tuple[str, str], dict[str, StoredResult]] = {}
        for result in self.results:
            if result.stage in RESULTS[1:]:
                for quantized in self._quantized(result):
                    later.setdefault((_target(result), quantized), {})[result.stage] = result
        return [
            PastBuild(
                {COMPARISON: result, **later.get((_target(result), quantized), {})},
                settings_of(link.document for link in self.chain(result)),
            )
            for result in self.results
            if result.stage == COMPARISON
            for quantized in self._quantized(result)
        ]

    def chain(self, result: StoredResult) -> Iterator[StoredResult]:
        """The record and those of all that it was made from, as far as they are here."""
        waiting, keys = [result], {result.key}
        while waiting:
            current = waiting.pop()
            yield current
            for stage, content in current.document["inputs"].items():
                maker = self.by_artifact.get((stage, content))
                if maker is not None and maker.key not in keys:
                    keys.add(maker.key)
                    waiting.append(maker)

    def _quantized(self, result: StoredResult) -> set[str]:
        """The quantized models behind a result; one, unless records are missing."""
        by_stage = (link.document["inputs"] for link in self.chain(result))
        return {inputs[QUANTIZED] for inputs in by_stage if QUANTIZED in inputs}


def history(store: LocalStore) -> History:
    """Reads every record; damaged ones are left out."""
    results = []
    for entry in inventory(store).entries:
        if not entry.digest:
            continue
        record = read_entry(store.root / entry.file.name, entry.file.kind, entry.key)
        if record is not None and {"stage", "inputs"} <= record.document.keys():
            time_ns = entry.file.mtime_ns
            results.append(
                StoredResult(entry.key, record.document, record.digest, record.size, time_ns)
            )
    return History(sorted(results, key=lambda result: (result.time_ns, result.key)))


def settings_of(documents: Iterable[Json]) -> Settings:
    """The parameters, files and tools behind a build, as text by route."""
    settings: dict[str, str] = {}
    for document in documents:
        settings |= _leaves("", document.get("params") or {})
        settings |= {f"tool {name}": str(x) for name, x in (document.get("tools") or {}).items()}
        for route, named in (document.get("sources") or {}).items():
            settings |= {f"{FILES} {route} {name}": content for name, content in named.items()}
    return settings


def _leaves(route: str, value: Json) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {route: str(value)}
    leaves: dict[str, str] = {}
    for key, inner in value.items():
        leaves |= _leaves(f"{route}.{key}" if route else str(key), inner)
    return leaves


def _target(result: StoredResult) -> str:
    target = result.document.get("target") or {}
    return str(target.get("name", ""))


@dataclass(frozen=True)
class TargetBuild:
    """A build of today for one target: `key` is that of its comparison, None if never built."""

    name: str  # of the project and variant
    target: str
    key: str | None
    settings: Settings

    @cached_property
    def files(self) -> frozenset[str]:
        """The digests of its files."""
        return _files(self.settings)


def target_build(build: Build, comparison: Node) -> TargetBuild:
    """As the stamps of its nodes say."""
    stamp = build.stamp(comparison)
    key = None if stamp is None else digest.of_document(stamp.document)
    documents, waiting = [], [comparison]
    while waiting:
        node = waiting.pop()
        if (own := build.stamp(node)) is not None:
            documents.append(own.document)
        waiting += [build.plan.node(name) for name in node.inputs.values()]
    return TargetBuild(comparison.group, str(comparison.target), key, settings_of(documents))


def owner_of(past: PastBuild, today: Sequence[TargetBuild]) -> int | None:
    """The index of the build of today that `past` belongs to; None where it shares no file."""
    for index, build in enumerate(today):
        if build.key == past.key:
            return index
    files = _files(past.settings)
    target = _target(past.results[COMPARISON])
    alike = [
        (len(changes(past.settings, build.settings)), index)
        for index, build in enumerate(today)
        if build.target == target and files & build.files
    ]
    return min(alike)[1] if alike else None


def changes(past: Settings, today: Settings) -> tuple[str, ...]:
    """What differs in `past`, one line each: settings first, then files, then tools."""
    differing = sorted(
        (route for route in {*past, *today} if past.get(route) != today.get(route)), key=_rank
    )
    return tuple(_change(route, past.get(route), today.get(route)) for route in differing)


def _rank(route: str) -> tuple[int, str]:
    kinds: Sequence[Callable[[str], bool]] = (
        lambda name: not name.startswith((f"{FILES} ", "tool ")),
        lambda name: name.startswith(f"{FILES} "),
    )
    return next((rank for rank, is_kind in enumerate(kinds) if is_kind(route)), 2), route


def _change(route: str, past: str | None, today: str | None) -> str:
    if route.startswith(f"{FILES} "):
        _, key, name = route.split(" ", 2)
        state = "no longer used" if today is None else "not used yet" if past is None else "other"
        return f"{key} {name}: {state}"
    return f"{route}: {'not set' if past is None else past}"


def _files(settings: Settings) -> frozenset[str]:
    return frozenset(x for route, x in settings.items() if route.startswith(f"{FILES} "))
