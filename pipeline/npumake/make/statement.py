"""Statements: in-toto Statement v1 with the SLSA provenance predicate v1.

    subject                  the compiled file
    externalParameters       project, variant, target and the YAML sections that were read
    internalParameters       the target's document; of each node its stage, key and code digest
    resolvedDependencies     files (the trained model, every sample), then tools with their versions
    byproducts               the intermediate artifacts, in order

A statement contains no time and no machine, so equal builds give equal statements. Sources: in-toto
Attestation Framework v1, SLSA v1.0 provenance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from npumake.cache.store import checked
from npumake.digest import Json, canonical
from npumake.errors import CacheError, ProjectError
from npumake.make.attested_build import AttestedBuild, Dependency

T = TypeVar("T")
TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:npumake:build:v1"
BUILDER = "urn:npumake:builder:unattended"
MAX_BYTES = 1 << 26


def statement_of(built: AttestedBuild, version: str, builder: str = BUILDER) -> dict[str, Json]:
    """The statement of a compiled file, by npumake of that `version`."""
    node = built.node
    return {
        "_type": TYPE,
        "subject": [{"name": built.file.name, "digest": {"sha256": built.digest}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "project": built.build.plan.project,
                    "variant": node.variant,
                    "target": node.target,
                    "sections": built.sections,
                },
                "internalParameters": {
                    "target": node.target_document,
                    "nodes": {
                        entry.short: {
                            "stage": entry.stage,
                            "key": built.key(entry),
                            "code": built.stamps[entry.name].document["code"],
                        }
                        for entry in built.nodes
                    },
                },
                "resolvedDependencies": [*_files(built), *_tools(built)],
            },
            "runDetails": {
                "builder": {"id": builder, "version": {"npumake": version}},
                "byproducts": [
                    {"name": entry.short, "digest": {"sha256": built.stamps[entry.name].digest}}
                    for entry in built.nodes
                    if entry is not node
                ],
            },
        },
    }


def _files(built: AttestedBuild) -> Iterator[dict[str, Json]]:
    for file in built.dependencies:
        yield {
            "name": file.name,
            "digest": {"sha256": file.digest},
            "annotations": {"route": file.route},
        }


def _tools(built: AttestedBuild) -> Iterator[dict[str, Json]]:
    for name, version in built.tools.items():
        yield {"name": name, "uri": tool_url(name, version), "annotations": {"version": version}}


def tool_url(name: str, version: str) -> str:
    """The package URL of a Python distribution, or of another program."""
    kind = "generic" if name in ("python", "processor") or " " in name else "pypi"
    return f"pkg:{kind}/{quote(name, safe='')}@{quote(version, safe='')}"


def statement_bytes(statement: Mapping[str, Json]) -> bytes:
    return canonical(statement)


# -- read ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """A parsed statement. `artifacts` are digests by node, in order; that of the file is last."""

    subject: str
    digest: str
    variant: str | None
    target: str
    sections: Mapping[str, Json]
    target_document: Json
    files: tuple[Dependency, ...]
    tools: Mapping[str, str]
    code: Mapping[str, str]
    artifacts: Mapping[str, str]


def read_statement(data: bytes, where: str) -> Statement:
    """Raises ProjectError for anything but a statement of ours."""
    try:
        document = json.loads(data)
        if (document["_type"], document["predicateType"]) != (TYPE, PREDICATE):
            raise ValueError(f"a statement of type {document['predicateType']}")
        definition = document["predicate"]["buildDefinition"]
        if definition["buildType"] != BUILD_TYPE:
            raise ValueError(f"a build of type {definition['buildType']}")
        return _read(document, definition)
    except (CacheError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        hint = "npumake attest writes one"
        raise ProjectError(f"not a statement of npumake: {error!r}", where, hint) from None


def _read(document: Json, definition: Json) -> Statement:
    (subject,) = document["subject"]
    external, internal = definition["externalParameters"], definition["internalParameters"]
    byproducts = document["predicate"]["runDetails"]["byproducts"]
    resolved = _typed(list, definition["resolvedDependencies"])
    files = (
        Dependency(str(entry["annotations"]["route"]), str(entry["name"]), _sha256(entry))
        for entry in resolved
        if "digest" in entry
    )
    tools = {str(e["name"]): str(e["annotations"]["version"]) for e in resolved if "uri" in e}
    return Statement(
        str(subject["name"]),
        _sha256(subject),
        external["variant"],
        str(external["target"]),
        _typed(dict, external["sections"]),
        _typed(dict, internal["target"]),
        tuple(files),
        tools,
        {name: str(node["code"]) for name, node in internal["nodes"].items()},
        {str(entry["name"]): _sha256(entry) for entry in _typed(list, byproducts)},
    )


def _typed(kind: type[T], value: Json) -> T:
    """Raises TypeError for a value of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not a {kind.__name__}")
    return value


def _sha256(entry: Json) -> str:
    """The digest of a file. Raises CacheError for anything but 64 hexadecimal digits."""
    return checked(_typed(str, entry["digest"]["sha256"]))
