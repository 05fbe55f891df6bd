"""SARIF 2.1.0: errors at the line of the YAML that they blame, and findings of the comparisons.

Code hosts show them beside the changed lines. Paths are relative to the repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from npumake import digest
from npumake.cli.ci_files.results import FAILED, ReportedNode
from npumake.cli.show import BUG
from npumake.cli.terminal import printable
from npumake.errors import PipelineError, Place

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
NOTE = "Note"
# id: its level and meaning; an error's id is its class
RULES: Mapping[str, tuple[str, str]] = {
    "ProjectError": ("error", "The project's YAML, or a file it names, is invalid."),
    "GraphError": ("error", "The model cannot be built."),
    "StageError": ("error", "A stage failed to build its artifact."),
    "CacheError": ("error", "The cache or the disk failed."),
    "GateError": ("error", "A gate of the project is not met."),
    "LockError": ("error", "An artifact is not the one of the lock file."),
    "Bug": ("error", "npumake failed."),
    "LargestError": ("warning", "A node loses much of an output's energy."),
    NOTE: ("note", "A remark on a target."),
}


@dataclass(frozen=True)
class SarifResult:
    """A finding other than an error: `rule` is one of RULES; `file` is where it is shown."""

    rule: str
    node: str
    text: str
    file: Path


def sarif_text(
    results: Sequence[ReportedNode], findings: Sequence[SarifResult], root: Path, code: int
) -> str:
    """`root` is the folder of the repository, `code` the exit code of the run."""
    entries = [*_errors(results, root), *(_of_finding(finding, root) for finding in findings)]
    run = {
        "tool": {"driver": _driver()},
        "invocations": [{"executionSuccessful": code == 0, "exitCode": code}],
        "columnKind": "unicodeCodePoints",
        "results": entries,
    }
    return digest.text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _driver() -> dict[str, Any]:
    from importlib.metadata import version

    rules = [
        {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
        for name, (level, text) in RULES.items()
    ]
    return {"name": "npumake", "version": version("npumake"), "rules": rules}


def _errors(results: Sequence[ReportedNode], root: Path) -> Iterator[dict[str, Any]]:
    for result in results:
        if result.status == FAILED:
            error = result.error
            text = BUG if error is None else "\n".join(filter(None, (error.what, error.hint)))
            rule = "Bug" if error is None else _rule(error)
            yield _entry(rule, result.name, text, _location(error, root))


def _rule(error: PipelineError) -> str:
    """The class of an error, or the one it derives from: a folder without write permission is a
    CacheError."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in RULES)


def _of_finding(finding: SarifResult, root: Path) -> dict[str, Any]:
    return _entry(finding.rule, finding.node, finding.text, _physical(str(finding.file), root))


def _entry(rule: str, node: str, text: str, location: dict[str, Any]) -> dict[str, Any]:
    names = [{"fullyQualifiedName": printable(node), "kind": "element"}]
    return {
        "ruleId": rule,
        "ruleIndex": [*RULES].index(rule),
        "level": RULES[rule][0],
        "message": {"text": printable(f"{node}: {text}")},
        "locations": [{**location, "logicalLocations": names}],
        "partialFingerprints": {"npumakeNode/v1": _fingerprint(rule, node, text)},
    }


def _fingerprint(rule: str, node: str, text: str) -> str:
    """Identifies a finding across runs, independent of its line. A node has many notes, and one
    error, whose figures change."""
    return digest.of_document([rule, node, text if rule == NOTE else ""])


def _location(error: PipelineError | None, root: Path) -> dict[str, Any]:
    if error is None or not isinstance(error.where, Place):
        return {}
    place = error.where
    return _physical(place.path, root, place.line, place.column)


def _physical(path: str, root: Path, line: int = 0, column: int = 0) -> dict[str, Any]:
    """Empty for a path outside the repository, which no code host shows."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    if relative.startswith(os.pardir):
        return {}
    uri = quote(os.fsencode(relative))
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}}
    if line:
        physical["region"] = {"startLine": line, **({"startColumn": column} if column else {})}
    return {"physicalLocation": physical}
