"""JUnit: a suite per project and variant, a case per node.

failure   a gate or the lock file: the artifact is there, and not good enough or another one
error     anything else that ended a node
skipped   a node whose inputs failed
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree

from npumake.cli.ci_files.results import FAILED, NOT_RUN, ReportedNode
from npumake.cli.show import BUG, error_text
from npumake.cli.terminal import printable
from npumake.errors import GateError, LockError

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'


def junit_text(results: Sequence[ReportedNode]) -> str:
    root = ElementTree.Element("testsuites", {"name": "npumake", **_counts(results)})
    for group, members in groupby(results, lambda result: result.group):
        cases = list(members)
        suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(group), **_counts(cases)})
        for case in cases:
            _add_case(suite, case)
    ElementTree.indent(root)
    return f"{DECLARATION}{ElementTree.tostring(root, encoding='unicode')}\n"


def _counts(results: Sequence[ReportedNode]) -> dict[str, str]:
    kinds = [_kind(result) for result in results]
    return {
        "tests": str(len(results)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _kind(result: ReportedNode) -> str:
    """The element of a case that did not succeed; empty for one that did."""
    if result.status == NOT_RUN:
        return "skipped"
    if result.status != FAILED:
        return ""
    return "failure" if isinstance(result.error, GateError | LockError) else "error"


def _add_case(suite: ElementTree.Element, result: ReportedNode) -> None:
    place = f"{result.group}.{result.target}" if result.target else result.group
    names = {"classname": _xml(place), "name": result.stage}
    case = ElementTree.SubElement(suite, "testcase", {**names, "time": f"{result.seconds:.3f}"})
    kind = _kind(result)
    if kind == "skipped":
        ElementTree.SubElement(case, kind, {"message": "an input of it was not built"})
    elif kind:
        error = result.error
        message, name = (error.what, type(error).__name__) if error else (BUG, "Bug")
        element = ElementTree.SubElement(case, kind, {"message": _xml(message), "type": name})
        element.text = _xml(error_text(error) if error else BUG)
    else:
        ElementTree.SubElement(case, "system-out").text = result.status


def _xml(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return printable(text)
