"""Workspaces for every room: built once per test process, copied for each test."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

# As `npumake` sets it, and before NumPy is loaded: threads of OpenBLAS wait by spinning, and took
# four tenths of the time of a test process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from draws import examples, of_a_whole_run
from forks import user_environment
from workspaces import Workspace, add_evaluation, add_report, copied, lay_out

# How fast a machine is, and how busy, is no property of what it computes.
settings.register_profile(
    "busy",
    examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy")

# No test shares its artifacts with whoever runs it.
os.environ["NPUMAKE_CACHE_REMOTE"] = ""

# Nor the width of a terminal, which pytest-xdist hands on.
os.environ.pop("COLUMNS", None)

# Processes of tests get the signals that they wait for, also in the background of a script, which
# ignores them and hands that on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The power stays on, and disks that others use are slow.
os.fsync = lambda _: None

# Looking for garbage took a tenth of the time of a test process: thousands of tests are in its way.
gc.set_threshold(20_000, 20, 10)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A sample of slow tests in a run of everything; and in an order in which no worker waits.

    Files of slow tests come first, then large ones. pytest-xdist hands files out in this order
    (`--no-loadscope-reorder`). By its own, the fewest tests last, the slowest files came last.
    """
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    drawn = set(of_a_whole_run(items) if is_whole else items)
    for item in set(items) - drawn:
        item.add_marker(pytest.mark.skip(reason="not drawn; NPUMAKE_EVERY=1 runs it"))
    slow = Counter(item.path for item in drawn if item.get_closest_marker("slow"))
    tests = Counter(item.path for item in drawn)
    items.sort(key=lambda item: (-slow[item.path], -tests[item.path], item.path))


def pytest_collection_finish() -> None:
    """The tests stay: nobody looks through them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """By a new interpreter, as a user builds it; most other runs are forks."""
    workspace = lay_out(tmp_path_factory.mktemp("built") / "w")
    command = [sys.executable, "-m", "doit"]
    subprocess.run(
        command, cwd=workspace.root, env=user_environment(), check=True, capture_output=True
    )
    return workspace


@pytest.fixture(scope="session")
def scored_once(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The same with an evaluation on 120 held-out digits, one folder per label, and lenient
    gates."""
    workspace = copied(built_once, tmp_path_factory.mktemp("scored") / "w")
    add_evaluation(workspace)
    workspace.doit()
    return workspace


@pytest.fixture(scope="session")
def reported_once(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """With a report of two variants, 20 digits evaluated and three samples shown."""
    workspace = copied(built_once, tmp_path_factory.mktemp("reported") / "w")
    add_report(workspace)
    workspace.doit()
    return workspace


@pytest.fixture(scope="session")
def handed_once(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """One whose files a vendor's tool is to make: it is not here, what it would be given is."""
    workspace = copied(built_once, tmp_path_factory.mktemp("handed") / "w")
    file = workspace.project / "project.yaml"
    said = file.read_text().partition("\ntargets:")[0]
    file.write_text(f"{said}\ncompile: {{vendor_tool: true}}\ntargets: [rdk-x5]\n")
    workspace.doit("digits:rdk-x5/handover")
    return workspace


@pytest.fixture(scope="session")
def listed_once(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """One for a chip of SyNAP's, whose thresholds are chosen by `kl`."""
    workspace = copied(built_once, tmp_path_factory.mktemp("listed") / "w")
    file = workspace.project / "project.yaml"
    said = file.read_text().partition("calibration:")[0]
    file.write_text(f"{said}calibration: {{method: kl}}\ntargets: [sl1680]\n")
    workspace.doit()
    return workspace


@pytest.fixture
def reported(reported_once: Workspace, tmp_path: Path) -> Workspace:
    """A copy of it."""
    return copied(reported_once, tmp_path / "w")


@pytest.fixture
def scored(scored_once: Workspace, tmp_path: Path) -> Workspace:
    """A copy of it."""
    return copied(scored_once, tmp_path / "w")


@pytest.fixture
def built(built_once: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the built workspace: another place, the same content."""
    return copied(built_once, tmp_path / "w")


@pytest.fixture
def fresh(tmp_path: Path) -> Workspace:
    """Nothing built yet."""
    return lay_out(tmp_path / "w")
