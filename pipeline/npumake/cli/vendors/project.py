"""Generates and builds the project behind a vendor's command.

A command writes a project to the vendor's output folder and builds it like `npumake build`, with
the same plan, stages and cache. `npumake list` and `why` work in that folder.
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

from npumake.cache.folders import make_folder
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

NOISE_SAMPLES = 8  # enough to time a model
OPERATORS = "operators"  # folder for copies of a vendor file's custom operators


def shape_argument(parser: argparse.ArgumentParser, *flags: str) -> None:
    parser.add_argument(
        *flags,
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "SHAPE"),
        help="shape of an input, as 1x3x224x224; repeatable",
    )


def allow_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=get_args(FINDING),
        help="a finding about the samples that does not stop the build; repeatable",
    )


def allowed_findings(native: Document, allow: Sequence[str]) -> dict[str, Json]:
    """`data:` with the allowed findings; a vendor's file has no key for them."""
    samples: dict[str, dict[str, Json]] = native.data.get("data", {})
    kinds_by_input = {
        name: list(dict.fromkeys([*entry.get("allow", []), *allow]))
        for name, entry in samples.items()
    }
    return (
        {"data": {name: {"allow": kinds} for name, kinds in kinds_by_input.items()}}
        if allow
        else {}
    )


def copied_operators(native: Document, config: Path, folder: Path) -> dict[str, Json]:
    """Copies the custom operators of a vendor's file to the project in `folder`; returns its
    `custom_operators:`. A project runs only code in its directory. Raises ProjectError."""
    patterns = native.data.get("custom_operators", [])
    sources = [pattern_files(config.parent, pattern) for pattern in patterns]
    if not patterns or not all(sources):  # the plan reports a missing file
        return {}
    copies: dict[str, bytes] = {}
    for _, path in (file for files in sources for file in files):
        name = Path(path).name
        if name in copies:
            message = f"two files of custom operators are called `{name}`"
            raise ProjectError(message, str(config), "rename one of them")
        copies[name] = Path(path).read_bytes()
    make_folder(folder / OPERATORS)
    for name, source in copies.items():
        with replacing(folder / OPERATORS / name) as temporary:
            temporary.write_bytes(source)
    return {"custom_operators": [f"{OPERATORS}/{glob.escape(name)}" for name in copies]}


def shapes(pairs: Sequence[Sequence[str]]) -> dict[str, Json]:
    """`inputs:` of a project from NAME SHAPE pairs. Raises ProjectError."""
    for _, text in pairs:
        if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", text):
            raise ProjectError(
                f"`{text}` is not a shape", "--input-shape", "write it as 1x3x224x224"
            )
    return {name: {"shape": [int(side) for side in text.split("x")]} for name, text in pairs}


def target_of(march: str | None, marches: Mapping[str, str]) -> str:
    """The chip of a march. Raises ProjectError."""
    if march is None:
        raise ProjectError("no march", "--march", did_you_mean("", marches))
    if march not in marches:
        raise ProjectError(f"unknown march `{march}`", "--march", did_you_mean(march, marches))
    return marches[march]


def model_files(model: str | None, proto: str | None, folder: Path) -> dict[str, str]:
    """`model:` of a project in `folder` from the files of the command line. Raises ProjectError."""
    if model is None:
        raise ProjectError("no model", "--model", "give the file of the float model")
    is_caffe = model.endswith(".caffemodel")
    if is_caffe and proto is None:
        raise ProjectError("a Caffe model without its prototxt", "--proto", "give both files")
    if proto is None:
        return {"path": relative_path(folder, model)}
    return {
        "path": relative_path(folder, proto),
        "weights": glob.escape(relative_path(folder, model)),
    }


def write_project(folder: Path, project: Json) -> None:
    """Writes project.yaml to `folder`, unless its text is unchanged. JSON is valid YAML."""
    make_folder(folder)
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in project.items())
    text = f"# Written by a drop-in command of npumake: its next run overwrites this.\n{lines}"
    file = folder / "project.yaml"
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        with replacing(file) as temporary:
            temporary.write_text(text, encoding="utf-8")


def relative_path(folder: Path, file: str | Path) -> str:
    """The path of a file relative to the project in `folder`."""
    return Path(os.path.relpath(file, folder)).as_posix()


def build_hushed(folder: Path, is_wanted: Callable[[Node], bool]) -> Build:
    """As `build`, without its lines. Raises PipelineError for the error that it would show."""
    from npumake.cli.screen import SCREEN

    try:
        with SCREEN.hushed():
            return build(folder, is_wanted)
    except SystemExit:
        if Reporter.first_error is not None:
            raise Reporter.first_error from None
        raise


def build(folder: Path, is_wanted: Callable[[Node], bool] = lambda node: True) -> Build:
    """Builds the nodes of the project in `folder` that `is_wanted` selects. Raises
    PipelineError."""
    project_build = selected(folder, [])[0]
    names = [node.name for node in project_build.plan.nodes if is_wanted(node)]

    config = {**configuration(), "dep_file": str(folder / ".doit.db"), "default_tasks": names}
    config["outfile"] = sys.stdout  # doit would keep the stream of its import
    members = {
        "DOIT_CONFIG": config,
        "task_npumake": lambda: tasks_of([(folder.name, project_build)]),
    }
    code = run_doit(members, names)
    if Reporter.first_error:
        raise SystemExit(Reporter.first_error.exit_code)  # the reporter has shown it
    if code:
        raise SystemExit(code)
    return project_build
