"""Machine-learning bills of material: CycloneDX 1.6.

    metadata.component   the compiled file, with its model card: data sets and figures
    components           the trained model, every data set with its files, every tool
    dependencies         the compiled file on all of them

Settings are properties named `npumake:<section>`. The serial number follows from the content, and
there is no timestamp: the same build gives the same bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from npumake.bundle.chain import MODEL_ROUTES
from npumake.digest import Json, canonical, of_document
from npumake.make.attested_build import AttestedBuild, Dependency, MeasuredMetric
from npumake.make.statement import tool_url

SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
COMPILED_REF, NAMESPACE = "compiled", uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # URLs
DATA_SECTIONS = ("data", "evaluation")


def bom_of(built: AttestedBuild, version: str) -> dict[str, Json]:
    """The bill of a compiled file, built by npumake of that `version`."""
    model = [file for file in built.dependencies if file.route in MODEL_ROUTES]
    others = [file for file in built.dependencies if file.route not in MODEL_ROUTES]
    components = [
        *(_model(file) for file in model),
        *(
            _set(route, list(files))
            for route, files in groupby(others, lambda component: component.route)
        ),
        *(_tool(name, release) for name, release in built.tools.items()),
    ]
    serial = uuid.uuid5(NAMESPACE, of_document([built.digest, components]))
    return {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [{"type": "application", "name": "npumake", "version": version}]
            },
            "component": _compiled(built, model),
        },
        "components": components,
        "dependencies": [
            {
                "ref": COMPILED_REF,
                "dependsOn": sorted(component["bom-ref"] for component in components),
            },
            *({"ref": component["bom-ref"]} for component in components),
        ],
    }


def bom_bytes(bom: Mapping[str, Json]) -> bytes:
    return canonical(bom)


def _compiled(built: AttestedBuild, model: Sequence[Dependency]) -> dict[str, Json]:
    return {
        "type": "machine-learning-model",
        "bom-ref": COMPILED_REF,
        "name": built.file.name,
        "version": built.digest[:12],
        "description": f"compiled for {built.node.target}",
        "hashes": _hashes(built.digest),
        "pedigree": {"ancestors": [_without_ref(_model(file)) for file in model]},
        "modelCard": {
            "modelParameters": {
                "datasets": [{"ref": ref} for ref in _data_refs(built)],
            },
            "quantitativeAnalysis": {
                "performanceMetrics": [_metric(metric) for metric in built.metrics]
            },
        },
        "properties": [*_properties(built)],
    }


def _data_refs(built: AttestedBuild) -> list[str]:
    routes = {file.route for file in built.dependencies}
    return [_ref(route) for route in sorted(routes) if route.split(".")[0] in DATA_SECTIONS]


def _metric(metric: MeasuredMetric) -> dict[str, Json]:
    return {
        "type": metric.name,
        "value": f"{metric.value:.9g}",
        "slice": f"{metric.artifact}, {metric.of}",
    }


def _properties(built: AttestedBuild) -> Iterator[dict[str, Json]]:
    """The target and every section, and the digests of the artifacts in between."""
    yield {"name": "npumake:target", "value": str(built.node.target)}
    for name, section in built.sections.items():
        if section is not None:
            yield {"name": f"npumake:{name}", "value": canonical(section).decode()}
    for node in built.nodes:
        value = built.stamps[node.name].digest
        yield {"name": f"npumake:artifact:{node.short}", "value": value}


def _model(file: Dependency) -> dict[str, Json]:
    return {
        "type": "machine-learning-model",
        "bom-ref": f"{_ref(file.route)}/{file.name}",
        "name": file.name,
        "version": file.digest[:12],
        "description": "trained",
        "hashes": _hashes(file.digest),
    }


def _set(route: str, files: Sequence[Dependency]) -> dict[str, Json]:
    """The files of one key; its hash is that of their names and digests in canonical JSON."""
    is_data = route.split(".")[0] in DATA_SECTIONS
    whole = of_document({file.name: file.digest for file in files})
    return {
        "type": "data" if is_data else "file",
        "bom-ref": _ref(route),
        "name": route,
        "version": whole[:12],
        "hashes": _hashes(whole),
        **({"data": [{"type": "dataset", "name": route}]} if is_data else {}),
        "components": [
            {"type": "file", "name": file.name, "hashes": _hashes(file.digest)} for file in files
        ],
    }


def _tool(name: str, version: str) -> dict[str, Json]:
    return {
        "type": "library",
        "bom-ref": f"tool/{name}",
        "name": name,
        "version": version,
        "purl": tool_url(name, version),
    }


def _ref(route: str) -> str:
    return f"file/{route}"


def _hashes(digest: str) -> list[Json]:
    return [{"alg": "SHA-256", "content": digest}]


def _without_ref(component: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in component.items() if key != "bom-ref"}
