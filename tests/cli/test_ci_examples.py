"""The examples of examples/ci/: their steps are run one by one, each run in a clean directory.

`run:` and `script:` lines are given to a shell. What the services do themselves stands in the two
tables: to check out, to restore and save folders, and to collect files.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from workspaces import REPO, Workspace, copied, few

EXAMPLES = REPO / "examples/ci"
CACHE = re.compile(r"Cache: (\d+) hits?, (\d+) miss")
ZEROS = "0" * 40  # what a service names as the commit before the first push of a branch


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def origin(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The repository of a team: main is locked, and a branch calibrates one target otherwise."""
    workspace = copied(built_once, tmp_path_factory.mktemp("origin") / "w")
    root, file = workspace.root, workspace.project / "project.yaml"
    (root / ".gitignore").write_text("cache/\nout/\n.doit.db*\nreports/\n")
    workspace.npumake("lock")
    git(root, "init", "-q", "-b", "main", ".")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")
    git(root, "checkout", "-q", "-b", "topic")
    text = file.read_text().replace("  - ara240", "  - ara240: {calibration: {method: mse}}")
    file.write_text(text)
    workspace.npumake("lock")
    git(root, "commit", "-q", "-a", "-m", "topic")
    return workspace


@dataclass(frozen=True)
class Event:
    """What a service was told: the branch, and the commit before it or the base of a request."""

    branch: str
    before: str = ZEROS
    base: str = ""


@dataclass(frozen=True)
class Service:
    """A service that keeps `folder` between runs, and a machine of it that does not."""

    folder: Path
    origin: Path
    machine: Path
    event: Event
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def checkout(self) -> Path:
        return self.machine / "checkout"

    def clone(self) -> None:
        branch = ("--branch", self.event.branch)
        git(self.machine, "clone", "-q", *branch, str(self.origin), str(self.checkout))

    def restore(self, paths: Sequence[str]) -> None:
        for path in paths:
            saved = self.folder / "cache" / path
            if saved.exists():
                shutil.copytree(saved, self.checkout / path, dirs_exist_ok=True)

    def save(self, paths: Sequence[str]) -> None:
        for path in paths:
            saved = self.folder / "cache" / path
            shutil.rmtree(saved, ignore_errors=True)
            shutil.copytree(self.checkout / path, saved)

    def collect(self, paths: Sequence[str]) -> None:
        """Of the files that a pattern names there must be some."""
        for path in paths:
            assert [*self.checkout.glob(path)], path

    def shell(self, script: str, variables: Mapping[str, str]) -> int:
        environment = {
            "HOME": str(self.machine),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPO / "pipeline"),
            "CI": "true",
            **self.variables,
            **variables,
        }
        command = ["bash", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=self.checkout, env=environment, capture_output=True, text=True, check=False
        )
        with (self.machine / "log").open("a") as log:
            log.write(f"$ {script}\n{done.stdout}{done.stderr}")
        return done.returncode

    @property
    def summary(self) -> str:
        return (self.checkout / "reports/summary.md").read_text()

    @property
    def hits_and_misses(self) -> tuple[int, int]:
        match = CACHE.search(self.summary)
        assert match is not None, self.summary
        return int(match[1]), int(match[2])


def lines(text: str) -> list[str]:
    return text.split()


# -- GitHub ----------------------------------------------------------------------------------

# Action without its version: what it does with `with:`.
ACTIONS: Mapping[str, Callable[[Service, Mapping[str, Any]], None]] = {
    "actions/checkout": lambda service, _: service.clone(),
    "actions/cache/restore": lambda service, given: service.restore(lines(given["path"])),
    "actions/cache/save": lambda service, given: service.save(lines(given["path"])),
    "actions/upload-artifact": lambda service, given: service.collect(lines(given["path"])),
    "github/codeql-action/upload-sarif": lambda service, given: service.collect(
        lines(given["sarif_file"])
    ),
}


def github(service: Service) -> int:
    """The exit code of the job: that of the first step that fails; later ones run if `always()`."""
    document = yaml.safe_load((EXAMPLES / "github.yml").read_text())
    (job,) = document["jobs"].values()
    steps = service.machine / "steps.md"
    service.variables.update(GITHUB_WORKSPACE=str(service.checkout), GITHUB_STEP_SUMMARY=str(steps))
    failed = 0
    for step in job["steps"]:
        assert step.get("if", "always()") == "always()"
        if failed and "if" not in step:
            continue
        if "uses" in step:
            ACTIONS[step["uses"].partition("@")[0]](service, step.get("with", {}))
            continue
        values = {k: expanded(v, service.event) for k, v in step.get("env", {}).items()}
        code = service.shell(step["run"], values)
        failed = failed or code
    assert steps.read_text() == service.summary
    return failed


def expanded(text: str, event: Event) -> str:
    """The text with `${{ a || b }}` replaced by the first of these that has a value."""
    contexts = {
        "github.event.pull_request.base.sha": event.base,
        "github.event.before": event.before,
    }

    def value(match: re.Match[str]) -> str:
        return next(filter(None, (contexts[name.strip()] for name in match[1].split("||"))), "")

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


# -- GitLab ----------------------------------------------------------------------------------


def gitlab(service: Service) -> int:
    document = yaml.safe_load((EXAMPLES / "gitlab.yml").read_text())
    (job,) = document.values()
    variables = {**job["variables"], "CI_COMMIT_BEFORE_SHA": service.event.before}
    if service.event.base:
        variables["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = service.event.base
    service.clone()
    service.restore(job["cache"]["paths"])
    failed = service.shell("\n".join(job["script"]), variables)
    service.shell("\n".join(job["after_script"]), variables)
    assert job["cache"]["when"] == job["artifacts"]["when"] == "always"
    service.save(job["cache"]["paths"])
    service.collect(job["artifacts"]["paths"])
    service.collect([*job["artifacts"]["reports"].values()])
    return failed


SERVICES: Mapping[str, Callable[[Service], int]] = {"github": github, "gitlab": gitlab}


def run_of(name: str, origin: Workspace, root: Path, event: Event) -> tuple[Service, int]:
    """A run on a machine of its own, after the earlier ones in `root`."""
    machine = root / f"machine{len([*root.glob('machine*')])}"
    machine.mkdir()
    service = Service(root / "service", origin.root, machine, event)
    return service, SERVICES[name](service)


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVICES)
def test_the_second_run_hits_and_a_request_is_compared(origin, tmp_path, name) -> None:
    push = Event("main")
    first, code = run_of(name, origin, tmp_path, push)
    nodes = sum(first.hits_and_misses)
    assert (code, first.hits_and_misses) == (0, (0, nodes))
    second, code = run_of(name, origin, tmp_path, push)
    assert (code, second.hits_and_misses) == (0, (nodes, 0))

    base = git(origin.root, "rev-parse", "main").strip()
    request, code = run_of(name, origin, tmp_path, Event("topic", base=base))
    assert code == 0
    hits, misses = request.hits_and_misses
    assert hits + misses == nodes
    assert 0 < misses < nodes
    assert f"Compared with {base[:12]}" in request.summary
    assert len(re.findall(r"\(=\)", request.summary)) >= 4  # the other target
    suites = ElementTree.parse(request.checkout / "reports/junit.xml").getroot()
    assert suites.get("tests") == str(nodes)


@pytest.mark.slow
@pytest.mark.parametrize("name", few(SERVICES, lambda name: name == next(iter(SERVICES))))
def test_a_request_without_its_lock_fails_and_keeps_what_was_made(origin, tmp_path, name) -> None:
    theirs = copied(origin, tmp_path / "theirs")
    git(theirs.root, "checkout", "-q", "main", "--", "projects/digits/npumake.lock")
    git(theirs.root, "commit", "-q", "-a", "-m", "forgotten")
    base = git(theirs.root, "rev-parse", "main").strip()
    run, code = run_of(name, theirs, tmp_path, Event("topic", base=base))
    assert code == 7
    assert "differs from the lock file" in run.summary
    assert [*(tmp_path / "service/cache/cache/blobs").rglob("*")]


# -- Docker ----------------------------------------------------------------------------------


def dockerfile() -> list[list[str]]:
    text = (EXAMPLES / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]


@pytest.mark.slow
def test_the_image_holds_all_that_its_command_needs(built: Workspace, tmp_path: Path) -> None:
    """COPY is done as it stands; the packages that RUN installs are those of this Python."""
    image = tmp_path / "image"
    for instruction, rest in dockerfile():
        if instruction == "COPY":
            *names, target = shlex.split(rest)
            place = image / target.lstrip("/")
            for name in names:
                source = REPO / name
                if source.is_dir():
                    shutil.copytree(source, place)
                else:
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, place)
    (command,) = (
        yaml.safe_load(rest) for instruction, rest in dockerfile() if instruction == "CMD"
    )
    sources = image / "npumake/pipeline"
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(sources),
        "HOME": str(tmp_path),
    }
    where = "import npumake; print(npumake.__file__)"
    for arguments in ([sys.executable, "-c", where], command):
        done = subprocess.run(
            arguments, cwd=built.root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert str(sources) in done.stdout or " current in " in done.stdout


INSTRUCTIONS = {"FROM", "RUN", "COPY", "ARG", "WORKDIR", "CMD"}


def test_the_dockerfile_is_of_known_instructions_and_sound_shell() -> None:
    lines = dockerfile()
    assert {instruction for instruction, _ in lines} == INSTRUCTIONS
    assert lines[0][0] == "FROM"
    for instruction, rest in lines:
        if instruction == "RUN":
            assert subprocess.run(["sh", "-n", "-c", rest], check=False).returncode == 0
        if instruction == "COPY":
            assert all((REPO / name).exists() for name in shlex.split(rest)[:-1])
    (system,) = (rest for _, rest in lines if "apt-get install" in rest)
    assert re.match(r"apt-get update && apt-get install -y .*rm -rf /var/lib/apt/lists", system)


def test_the_image_installs_what_was_copied() -> None:
    installs = [
        rest for instruction, rest in dockerfile() if instruction == "RUN" and "pip install" in rest
    ]
    (place,) = (word for word in shlex.split(installs[0]) if word.startswith("/"))
    folder, _, extra = place.partition("[")
    copies = [rest for instruction, rest in dockerfile() if instruction == "COPY"]
    assert any(folder in rest and "pyproject.toml" in rest for rest in copies)
    assert f"\n{extra.rstrip(']')} = [" in (REPO / "pyproject.toml").read_text()


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_both_services_use_the_image_that_the_dockerfile_names(name: str) -> None:
    (image,) = re.findall(r"-t (\S+)", (EXAMPLES / "Dockerfile").read_text())
    assert image in (EXAMPLES / name).read_text()
