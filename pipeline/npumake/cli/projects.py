"""Finds the projects of a directory and loads their plans, cached."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from npumake import digest
from npumake.cache.sealed import sealed, unsealed
from npumake.cli.show import print_note
from npumake.digest import is_stored
from npumake.errors import PipelineError, ProjectError, did_you_mean
from npumake.make.build import STAMPS, Build
from npumake.make.memory import BuildMemory, PlanInputs, cache_directory, workspace
from npumake.make.node import ProjectPlan, plan_from
from npumake.make.places import project_directories as project_directories
from npumake.make.remote_files import MODE, NO_REMOTE, is_configured

if TYPE_CHECKING:
    from npumake.project.reader import Project

# A project's name with its build, or with the error that prevents it.
NamedBuild: TypeAlias = tuple[str, Build | PipelineError]

NOWHERE = "run it in a project, or in the folder that holds projects/; or name a project's folder"


def no_project(directory: Path) -> ProjectError:
    """The error for a folder without projects; the hint names a vendor's YAML in it."""
    from npumake.cli.vendor_project import vendor_files

    files = vendor_files(directory)
    folder = os.path.relpath(directory)
    hint = f"npumake new {folder} --config {os.path.relpath(files[0])}" if files else NOWHERE
    return ProjectError("no project here", str(directory), hint)


def places(names: Sequence[str]) -> dict[Path, list[str]]:
    """The names to look for, by folder; without names, everything here.

    A name may start with a project's folder, `../digits:rdk-x5/calibrated`, or be the file of a
    node's artifact.
    """
    directory = Path.cwd()
    nearby = set(project_directories(directory))
    names_by_folder: dict[Path, list[str]] = {} if names else {directory: []}
    for name in names:
        folder, called = _called(name)
        at = directory if folder is None or folder in nearby else folder
        names_by_folder.setdefault(at, []).append(called)
    return names_by_folder


def _called(name: str) -> tuple[Path | None, str]:
    """The project's folder and the name within its build; a name without folder is unchanged."""
    prefix = re.split("[:@]", name, maxsplit=1)[0]
    folder = Path(os.path.abspath(prefix))
    if prefix and (folder / "project.yaml").is_file():
        return folder, folder.name + name[len(prefix) :]
    file = Path(os.path.abspath(name))
    # An artifact is in its project's out/ or out/@variant/.
    above = (folder for folder in file.parents if (folder / "project.yaml").is_file())
    around = None if ":" in name else next(above, None)
    for _, build in builds(around) if around else ():
        if isinstance(build, Build):
            for node in build.plan.nodes:
                if build.artifact(node) == file:
                    return around, node.name
    return None, name


def place(name: str) -> tuple[Path, str]:
    """As `places`, for one name."""
    ((directory, (called,)),) = places([name]).items()
    return directory, called


def typed(directory: Path, group: str) -> str:
    """A command's argument for a project or a variant: its name, or its folder if the name finds
    nothing."""
    current = Path.cwd()
    if directory in project_directories(current):
        return group
    return f"{Path(os.path.relpath(directory, current)).as_posix()}{group[len(directory.name) :]}"


def builds(top: Path, paranoid: bool | None = None) -> Iterator[NamedBuild]:
    """The build of each project here. Raises CacheError for an unusable cache."""
    memory = BuildMemory(cache_directory(top), paranoid, workspace(top))
    memory.sweep()
    yield from read_builds(project_directories(top), memory)
    memory.save()


def read_builds(directories: Iterable[Path], memory: BuildMemory) -> Iterator[NamedBuild]:
    """The build of each project, in a memory that is not saved."""
    for directory in directories:
        name = directory.name
        try:
            _refuse_links(directory)
            build = Build(directory, plan_of(directory, memory), memory)
            build.sweep()
            yield name, build
        except PipelineError as error:
            yield name, error


def selected(directory: Path, names: list[str], paranoid: bool | None = None) -> list[Build]:
    """The builds of the named projects, by default of all. Raises PipelineError."""
    by_name = dict(builds(directory, paranoid))
    if not by_name:
        raise no_project(directory)
    chosen = []
    for name in names or by_name:
        build = by_name.get(name)
        if build is None:
            raise ProjectError(f"no project `{name}`", hint=did_you_mean(name, by_name))
        if isinstance(build, PipelineError):
            raise build
        chosen.append(build)
    return chosen


def configuration_files(build: Build) -> tuple[Path, ...]:
    """The YAML files of a planned project: those of its folder, and those that it reads elsewhere,
    as its plan remembers them. Raises PipelineError."""
    directory = build.directory
    beside = tuple(directory / name for name in _yaml_in(directory))
    try:
        data = (directory / STAMPS / "plan.json").read_bytes()
        remembered = unsealed(_identity(directory), data)
    except OSError:
        remembered = None
    if remembered is not None:
        return (*beside, *(directory / name for name in remembered["files"]))
    # The folder is read-only: nothing was remembered.
    from npumake.dialects.table import ALL_DIALECTS
    from npumake.project.reader import read_project

    project = read_project(directory, ALL_DIALECTS)
    return (*beside, *project.files, *_plugin_files(project))


def refuse_no_remote(memory: BuildMemory) -> None:
    """Raises ProjectError if no remote cache is configured."""
    store = memory.layered
    is_off = os.environ.get(MODE) == "off" and memory.workspace and is_configured(memory.workspace)
    if store is None or (store.far is None and not is_off):
        raise ProjectError("no remote cache is configured", hint=NO_REMOTE)


def plan_of(directory: Path, memory: BuildMemory) -> ProjectPlan:
    """The plan of a project, computed again only if its YAML or our code changed.

    The cached plan holds the digest of all its inputs. Raises PipelineError.
    """
    file = directory / STAMPS / "plan.json"
    beside: list[str] = []  # files that were read from elsewhere
    variables: list[str] = []
    try:
        remembered = unsealed(_identity(directory), file.read_bytes())
        if remembered is not None:
            beside, variables = remembered["files"], remembered["variables"]
            if remembered["from"] == _inputs_digest(directory, memory, beside, variables):
                memory.read[directory] = PlanInputs((*beside,), (*variables,))
                return plan_from(remembered["plan"])
    except (OSError, ValueError, KeyError, TypeError):
        beside, variables = [], []  # absent or of another version: planning is right
    # Loads the YAML parser and its schema; a build with nothing to do never gets here.
    from npumake.dialects.table import ALL_DIALECTS
    from npumake.make.declarations import stages
    from npumake.make.plan import planned
    from npumake.project.reader import read_project
    from npumake.targets.reader import read_target

    while True:
        # Digests come before the text. They must cover all files and variables that the text turns
        # out to use; usually these are those of the last time, and one pass suffices.
        made_from = _inputs_digest(directory, memory, beside, variables)
        project = read_project(directory, ALL_DIALECTS)
        files = {os.path.relpath(p, directory) for p in (*project.files, *_plugin_files(project))}
        if files <= {*_yaml_in(directory), *beside} and {*project.variables} <= {*variables}:
            break
        beside, variables = sorted(files), list(project.variables)
    memory.read[directory] = PlanInputs((*beside,), (*variables,))
    plan = planned(project, stages(memory), read_target)
    for note in project.notes:
        print_note(note.what, note.where)
    document = {"from": made_from, "files": beside, "variables": variables, "plan": plan}
    memory.keep(file, sealed(_identity(directory), document))
    return plan


def planned_from(directory: Path) -> list[str]:
    """The files that the project's last plan depends on, relative to it."""
    try:
        plan = unsealed(_identity(directory), (directory / STAMPS / "plan.json").read_bytes())
        return [*plan["files"]] if plan is not None else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _plugin_files(project: Project) -> tuple[Path, ...]:
    """Of the installed packages that add its dialect or its targets. Raises ProjectError."""
    from npumake import plugins
    from npumake.dialects.table import DIALECTS
    from npumake.make.plugin_code import plugin_files
    from npumake.targets.reader import target_names

    own = {plugins.TARGETS: target_names(), plugins.DIALECTS: tuple(DIALECTS)}
    return plugin_files(project, own)


def _identity(directory: Path) -> str:
    """The seal of a cached plan; it names the folder, so that a copied project is planned again."""
    return f"plan of {directory.name}"


def _refuse_links(directory: Path) -> None:
    """Raises ProjectError for a link at `out` or a folder in it: artifacts must stay inside."""
    out = f"{directory}/out"
    inside = list(os.scandir(out)) if os.path.isdir(out) else []
    for path in (out, *(entry.path for entry in inside if os.path.isdir(entry.path))):
        if os.path.islink(path):
            message = "a link, through which artifacts would be written elsewhere"
            raise ProjectError(message, os.path.relpath(path), "remove it")


def _inputs_digest(
    directory: Path, memory: BuildMemory, read: list[str], variables: list[str]
) -> str:
    """The digest of the project's YAML files, by name, with those that were read from elsewhere
    and the variables they hold, and of our own sources."""
    names = {*_yaml_in(directory), *read}
    files = {name: memory.files.of(directory / name) for name in sorted(names)}
    values = {name: os.environ.get(name) for name in variables}
    document = {"files": files, "variables": values, "code": memory.code.package_digest}
    return digest.of_document(document)


def _yaml_in(directory: Path) -> list[str]:
    with os.scandir(directory) as entries:
        yaml = [entry for entry in entries if entry.name.endswith((".yaml", ".yml"))]
    return [entry.name for entry in yaml if is_stored(entry.path)]
