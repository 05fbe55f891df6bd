"""The findings of every build of a project in one self-contained HTML file.

The data is embedded as JSON with `<` escaped as \\u003c, so it cannot end its element. A content
security policy forbids loading anything from outside the page.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from npumake import digest
from npumake.cache.store import Record
from npumake.digest import Json
from npumake.report.assets import asset, charts
from npumake.report.build_graph import BuildNode, svg
from npumake.report.findings import Findings

MAX_SETTINGS = 16  # of a node, in its tooltip
SCRIPTS = ("widgets.js", "nodes.js", "page.js")  # in the order in which they name each other


@dataclass(frozen=True)
class Page:
    text: str

    suffix: ClassVar[str] = ".html"

    def save(self, path: Path) -> None:
        path.write_text(self.text, encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: Path) -> Page:
        return cls(path.read_bytes().decode("utf-8"))


def page(
    findings: Mapping[str, Findings],
    provenance: Mapping[str, Record],
    refused: Mapping[str, Sequence[str]] | None = None,
) -> Page:
    """The page of `findings` by build name and `provenance` by node name, both sorted by name:
    cache keys do not depend on any other order. `refused` has the message and the hint of the error
    by the name of each build that failed."""
    project = min(findings).partition(":")[0].partition("@")[0]
    builds = [{"name": name, **build.document} for name, build in sorted(findings.items())]
    pictures = dict.fromkeys(sample["picture"] for build in builds for sample in build["samples"])
    places = {picture: place for place, picture in enumerate(pictures)}
    data = {
        "project": project,
        "pictures": list(pictures),
        "builds": [_build(findings_of_build, places) for findings_of_build in builds],
        "refused": [
            {"name": name, "what": message, "hint": hint}
            for name, (message, hint) in sorted((refused or {}).items())
        ],
        "provenance": [_provenance(name, record) for name, record in sorted(provenance.items())],
    }
    parts = {
        "TITLE": html.escape(f"{project}: report"),
        "STYLE": asset("page.css"),
        "BUILD": svg({project: build_nodes(provenance)}),
        "DATA": as_json(data),
        "CHARTS": charts(),
        "SCRIPT": "\n".join(map(asset, SCRIPTS)),
    }
    head, *rest = asset("page.html").split("<!--")
    pieces = [head]
    for piece in rest:
        name, _, text = piece.partition("-->")
        pieces += [parts[name], text]
    return Page("".join(pieces))


def as_json(data: Json) -> str:
    """JSON that is safe inside a script element."""
    text = digest.text(data, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def _build(build: Mapping[str, Json], places: Mapping[str, int]) -> Json:
    """A picture is stored once and referenced by number from every build."""
    samples = [sample | {"picture": places[sample["picture"]]} for sample in build["samples"]]
    return {**build, "samples": samples}


def _provenance(name: str, record: Record) -> dict[str, Json]:
    return {
        "node": name,
        "stage": record.document["stage"],
        "digest": record.digest,
        "key": digest.of_document(record.document),
        "bytes": record.size,
        "tools": dict(record.document["tools"]),
        "params": record.document["params"],
    }


def build_nodes(provenance: Mapping[str, Record]) -> list[BuildNode]:
    """The nodes of a finished build, as they were made: what each was made from, and its size."""
    return [
        BuildNode(
            name, "made", f"{record.size:,} bytes", _details(record), _inputs(name, provenance)
        )
        for name, record in sorted(provenance.items())
    ]


def _inputs(name: str, provenance: Mapping[str, Record]) -> tuple[str, ...]:
    """The inputs by name. A key document has their stages and digests: of the same target and
    variant where there are such nodes, else of those that targets and variants share."""
    group, _, short = name.partition(":")
    target, project = short.rpartition("/")[0], group.partition("@")[0]
    inputs = []
    for stage, content in provenance[name].document["inputs"].items():
        fitting = (
            f"{entry}:{inner}{stage}"
            for entry in (group, project)
            for inner in (f"{target}/" if target else "", "")
        )
        inputs += [
            entry
            for entry in dict.fromkeys(fitting)
            if entry in provenance and provenance[entry].digest == content
        ][:1]
    return tuple(inputs)


def _details(record: Record) -> tuple[str, ...]:
    """The digest of the artifact, its files, and the settings that are not open."""
    document = record.document
    files = [
        f"{route}: {name}" for route, named in document["sources"].items() for name in list(named)
    ]
    settings = [
        f"{section}.{key}: {value}"
        for section, values in document["params"].items()
        if isinstance(values, dict)
        for key, value in values.items()
        if value is not None
    ]
    lines = [f"SHA-256 {record.digest}", *files, *settings]
    hidden_count = len(lines) - MAX_SETTINGS
    return (*lines[:MAX_SETTINGS], *((f"and {hidden_count} more",) if hidden_count > 0 else ()))
