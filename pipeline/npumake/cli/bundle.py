"""npumake bundle: pack a project that reproduces a problem, for a support ticket

The ZIP holds the YAML, the model, a few samples, the versions, the commands, and the log of a build
of just these files. Files outside of the project are packed only if the YAML names them.

example:
  npumake bundle digits
  npumake bundle digits -o ticket.zip --samples all
  npumake bundle digits --random-weights    # weights of the same distribution, not the trained ones

exit codes: 0 packed, even if its build fails; else those of a build
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from npumake import digest
from npumake.cache.publish import replacing
from npumake.cli.projects import plan_of
from npumake.cli.selection import selection
from npumake.errors import PipelineError, ProjectError
from npumake.lifetime.parent import supervised
from npumake.lifetime.temporaries import temporary_folder
from npumake.make.build import Build
from npumake.make.memory import BuildMemory
from npumake.make.reproduction import Reproduction, reproduction
from npumake.project.files import source_files

SAMPLES = 16
DATE = (1980, 1, 1, 0, 0, 0)  # of every member, the earliest of ZIP
LOG, COMMANDS, VERSIONS = "log.txt", "commands.sh", "versions.json"
# Variables that affect a build; others may be secrets.
SETTINGS = ("NPUMAKE_PARANOID", "NPUMAKE_THREADS", "OMP_NUM_THREADS")
BUILD = "npumake build"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("project", metavar="PROJECT", help="or its folder")
    parser.add_argument("-o", "--output", type=Path, metavar="ZIP", help="PROJECT.zip by default")
    parser.add_argument(
        "--samples",
        type=_count,
        default=SAMPLES,
        metavar="N",
        help=f"of each set, evenly spread, or all; {SAMPLES} by default",
    )
    parser.add_argument(
        "--random-weights",
        action="store_true",
        help="replace the weights; each tensor keeps mean, deviation, range and share of zeros",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random weights, 0")
    parser.add_argument("--follow-links", action="store_true", help="pack the targets of links")
    parser.add_argument("--no-build", action="store_true", help="pack without a build and its log")


def _count(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"`{text}` is neither a number of samples nor `all`")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    build = _build(arguments.project)
    output = arguments.output or Path(f"{build.plan.project}.zip")
    packed = _reproduction(build, arguments.samples, arguments.follow_links)
    with temporary_folder() as folder:
        seed = arguments.seed if arguments.random_weights else None
        replaced = packed.write(folder, seed)
        _check(folder, packed)
        _write_documents(folder, packed)
        names = [*packed.places, COMMANDS, VERSIONS]
        if not arguments.no_build:
            code, text = _logged(folder, folder / packed.project)
            folder.joinpath(LOG).write_text(text, encoding="utf-8")
            names.append(LOG)
        _zip(folder, names, output)
    print(f"{output}: {len(names)} files, {output.stat().st_size:,} bytes")
    if packed.left_out:
        print(f"{packed.left_out} samples are left out; --samples all packs them")
    if arguments.random_weights:
        print(f"{replaced} tensors hold random weights; names and all other data stay")
    if not arguments.no_build:
        print(f"its own build ends with {code}: see {LOG} in it")
    return 0


def _build(name: str) -> Build:
    """Raises PipelineError for an unknown project, and for one that cannot be planned."""
    return selection(name).build


def _reproduction(build: Build, samples: int | None, follow_links: bool) -> Reproduction:
    from npumake.dialects.table import ALL_DIALECTS
    from npumake.project.reader import read_project

    project = read_project(build.directory, ALL_DIALECTS)
    try:
        return reproduction(project, build.plan, samples, follow_links)
    except PipelineError as error:
        raise build.with_place(build.plan.nodes[0], error) from None


def _check(folder: Path, packed: Reproduction) -> None:
    """Raises ProjectError if the packed project would not read the packed files."""
    directory = folder / packed.project
    plan = plan_of(directory, BuildMemory(folder / ".cache"))
    for source in {source for node in plan.nodes for source in node.sources}:
        named = [name for name, _ in source_files(directory, source)]
        if named != [file.name for file in packed.files[source.route]]:
            message = f"`{source.pattern}` would name other files in the bundle"
            raise ProjectError(message, source.route, "write it as a path from the project")


def _write_documents(folder: Path, packed: Reproduction) -> None:
    environment = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    versions = {
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": {distribution.name: distribution.version for distribution in distributions()},
        "environment": environment,
    }
    text = digest.text(versions, indent=1, sort_keys=True)
    folder.joinpath(VERSIONS).write_text(f"{text}\n", encoding="utf-8")
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    lines = [
        "#!/bin/sh",
        'cd "$(dirname "$0")"',
        *exports,
        f"cd {shlex.quote(packed.project)}",
        BUILD,
    ]
    folder.joinpath(COMMANDS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _logged(folder: Path, project: Path) -> tuple[int, str]:
    """The exit code and the output of the build that COMMANDS names, without this machine's
    paths."""
    command = [sys.executable, "-P", "-m", "npumake", *BUILD.split()[1:]]
    variables = {**os.environ, "NPUMAKE_CACHE": f"{folder}/.cache", "NPUMAKE_CACHE_REMOTE": ""}
    ran = subprocess.run(
        supervised(command),
        cwd=project,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    text = ran.stdout.decode("utf-8", "replace")
    for private, label in (
        (f"{folder}/", ""),
        (str(Path(__file__).parents[2]), "PYTHON"),
        (sys.prefix, "PYTHON"),
        (str(Path.home()), "~"),
    ):
        text = text.replace(private, label) if len(private) > 1 else text
    return ran.returncode, f"$ {BUILD}\n{text}exit code {ran.returncode}\n"


def _zip(folder: Path, names: Sequence[str], output: Path) -> None:
    with replacing(output) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(names):
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o755 if name == COMMANDS else 0o644) << 16
            with (folder / name).open("rb") as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target)
