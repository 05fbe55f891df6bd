"""What the vendors' commands have in common: a project laid out, built, and its files handed over.

A command makes a project of its own inside the vendor's output folder and builds it as `npumake
build` would, through the same plan, stages and cache; `npumake list` and `why` work in there.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from npumake.cache.publish import replacing
from npumake.cli.projects import selected
from npumake.cli.reporter import Reporter
from npumake.cli.scheduling import configuration, tasks_of
from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean
from npumake.make.build import Build
from npumake.make.node import Node
from npumake.make.tasks import run_doit
from npumake.project.files import pattern_files
from npumake.project.sections import FINDING

if TYPE_CHECKING:
    from npumake.project.document import Document

RANDOM = 8  # samples of noise where only speed is asked for
OPERATORS = "operators"  # the folder of a project for the Python that a vendor's file names


def shape_argument(parser: argparse.ArgumentParser, *flags: str) -> None:
    parser.add_argument(
        *flags,
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "SHAPE"),
        help="of an input, as 1x3x224x224; may be given again",
    )


def allow_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=get_args(FINDING),
        help="a finding about the samples that does not stop the build; may be given again",
    )


def waived(native: Document, allow: Sequence[str]) -> dict[str, Json]:
    """`data:` beside a vendor's file, which has no word for a finding that is meant to be so."""
    samples: dict[str, dict[str, Json]] = native.data.get("data", {})
    both = {
        name: list(dict.fromkeys([*how.get("allow", []), *allow])) for name, how in samples.items()
    }
    return {"data": {name: {"allow": kinds} for name, kinds in both.items()}} if allow else {}


def operators_beside(native: Document, config: Path, folder: Path) -> dict[str, Json]:
    """`custom_operators:` of a project in `folder`: what a project runs lies in its directory, so
    the Python beside a vendor's file is copied there. Raises ProjectError."""
    patterns = native.data.get("custom_operators", [])
    found = [pattern_files(config.parent, pattern) for pattern in patterns]
    if not patterns or not all(found):  # of what is not there, the plan tells
        return {}
    copies: dict[str, bytes] = {}
    for _, path in (file for files in found for file in files):
        name = Path(path).name
        if name in copies:
            message = f"two files of custom operators are called `{name}`"
            raise ProjectError(message, str(config), "rename one of them")
        copies[name] = Path(path).read_bytes()
    (folder / OPERATORS).mkdir(parents=True, exist_ok=True)
    for name, source in copies.items():
        with replacing(folder / OPERATORS / name) as temporary:
            temporary.write_bytes(source)
    return {"custom_operators": [f"{OPERATORS}/{glob.escape(name)}" for name in copies]}


def shapes(given: Sequence[Sequence[str]]) -> dict[str, Json]:
    """`inputs:` of a project from NAME SHAPE pairs. Raises ProjectError."""
    for _, text in given:
        if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", text):
            raise ProjectError(f"`{text}` is no shape", "--input-shape", "write it as 1x3x224x224")
    return {name: {"shape": [int(side) for side in text.split("x")]} for name, text in given}


def target_of(march: str | None, marches: Mapping[str, str]) -> str:
    """The chip of a march. Raises ProjectError."""
    if march is None:
        raise ProjectError("which march?", "--march", did_you_mean("", marches))
    if march not in marches:
        raise ProjectError(f"unknown march `{march}`", "--march", did_you_mean(march, marches))
    return marches[march]


def model_files(model: str | None, proto: str | None, folder: Path) -> dict[str, str]:
    """`model:` of a project in `folder` from the files of the command line. Raises ProjectError."""
    if model is None:
        raise ProjectError("which model?", "--model", "give the file of the float model")
    is_caffe = model.endswith(".caffemodel")
    if is_caffe and proto is None:
        raise ProjectError("a Caffe model without its prototxt", "--proto", "give both files")
    if proto is None:
        return {"path": seen_from(folder, model)}
    return {"path": seen_from(folder, proto), "weights": glob.escape(seen_from(folder, model))}


def laid_out(folder: Path, project: Json) -> None:
    """A project.yaml in `folder`, rewritten only when it says something else. JSON is YAML."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in project.items())
    text = f"# Written by a drop-in command of npumake: its next run overwrites this.\n{lines}"
    file = folder / "project.yaml"
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        with replacing(file) as temporary:
            temporary.write_text(text, encoding="utf-8")


def seen_from(folder: Path, file: str | Path) -> str:
    """A file as a project in `folder` names it."""
    return Path(os.path.relpath(file, folder)).as_posix()


def build(folder: Path, wanted: Callable[[Node], bool] = lambda node: True) -> Build:
    """The project in `folder`, its `wanted` nodes built. Raises PipelineError."""
    found = selected(folder, [])[0]
    names = [node.name for node in found.plan.nodes if wanted(node)]

    config = {**configuration(), "dep_file": str(folder / ".doit.db"), "default_tasks": names}
    config["outfile"] = sys.stdout  # doit's own default is that of its import
    Reporter.first_error = None
    members = {"DOIT_CONFIG": config, "task_npumake": lambda: tasks_of([(folder.name, found)])}
    code = run_doit(members, names)
    if Reporter.first_error:
        raise SystemExit(Reporter.first_error.exit_code)  # the reporter has told it
    if code:
        raise SystemExit(code)
    return found
