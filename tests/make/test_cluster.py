"""Builds on a Dask cluster of real processes, which share nothing but a remote cache."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clusters import Cluster, artifacts, client_at, cluster, end
from npumake.errors import StageError
from npumake.extras import installer
from npumake.make.dask_client import refuse_absent
from processes import eventually
from remote_servers import faulty
from workspaces import REPO, Workspace, add_evaluation, every_only, made

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="ends processes as Linux does"),
]
# Of two targets and two variants, without what reports on them.
NODES = ("digits:rdk-x5/compiled", "digits@kl:ara240/compiled")
COUNTING = """\
def metric(*_):
    with open({path!r}, "a") as file:
        file.write("ran\\n")
    raise ValueError("no such label")
"""


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The artifacts of a build in one process."""
    client = client_at(tmp_path_factory.mktemp("single") / "w")
    client.npumake("build")
    return artifacts(client)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Over HTTP. The second worker is started by a launcher that calls `dask worker` itself."""
    root = tmp_path_factory.mktemp("pair") / "c"
    with faulty() as server, cluster(root, "one", remote=server.url) as found:
        plain = "-m distributed.cli.dask_worker --no-dashboard --name two --scheduler-file"
        python = f'"{sys.executable}"'
        line = f'eval "$({python} -m npumake worker)"; exec {python} {plain} "{found.scheduler}"'
        found.start("two", "sh", "-c", line)
        yield found


def test_two_workers_make_the_bytes_of_one_process_and_each_node_once(
    pair: Cluster, single: dict[str, bytes], tmp_path: Path
) -> None:
    client = client_at(tmp_path / "w")
    run = pair.build(client, "--json")
    assert run.returncode == 0, run.stderr
    outcomes = json.loads(run.stdout)
    assert {outcome["worker"] for outcome in outcomes} == {"one", "two"}
    assert artifacts(client) == single
    assert pair.runs("one", "two") == len(single)
    again = pair.build(client)
    assert (made(again, "made"), made(again, "recalled")) == (set(), set())


def test_a_build_with_nothing_to_make_needs_no_cluster(built: Workspace) -> None:
    arguments = ("--executor", "dask", "--scheduler", "tcp://127.0.0.1:9")
    shutil.rmtree(built.project / "out")
    recalled = built.npumake("build", *arguments)
    assert made(recalled, "recalled")
    assert "nothing to do" not in recalled.stdout
    assert " current in " in built.npumake("build", *arguments).stdout


def test_without_dask_the_error_has_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installer.cache_clear()
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(StageError) as caught:
        refuse_absent()
    assert "npumake[dask]" in caught.value.hint
    installer.cache_clear()  # what it finds without a path is no one else's


def test_an_error_of_the_project_comes_back_with_its_place_and_runs_once(
    pair: Cluster, tmp_path: Path
) -> None:
    client = client_at(tmp_path / "w")
    add_evaluation(client, 5)
    client.project.joinpath("gates.yaml").unlink()
    runs = tmp_path / "runs"
    client.project.joinpath("metric.py").write_text(COUNTING.format(path=str(runs)))
    client.project.joinpath("evaluation.yaml").write_text(
        "dataset: {files: val/*/*.npy}\nmetric: metric.py:metric\nartifacts: [float]\n"
    )
    run = pair.build(client, "digits:float_score")
    alone = client.npumake("build", "digits:float_score", check=False)
    error = re.findall(r"error: .*\n  --> .*\n", alone.stdout)[0]
    assert error in run.stdout
    assert run.returncode == alone.returncode
    assert runs.read_text().count("ran") == 2  # on the cluster, and here


def test_a_killed_worker_costs_no_result_and_repeats_at_most_its_own_node(
    single: dict[str, bytes], tmp_path: Path
) -> None:
    with cluster(tmp_path / "c", "one") as here:
        client = client_at(tmp_path / "w")
        process = subprocess.Popen(
            here.arguments(*NODES),
            cwd=client.root,
            env=here.environment(client.root),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        end(here.processes[-1])
        here.start_worker("two")
        rest, _ = process.communicate()
        assert process.returncode == 0, rest
        assert all(" on one" in line for line in lines)
        files = artifacts(client)
        assert files.items() <= single.items()
        assert len(files) <= here.runs("one", "two") <= len(files) + 1


@every_only
def test_a_worker_without_a_disk_costs_no_node(single: dict[str, bytes], tmp_path: Path) -> None:
    with cluster(tmp_path / "c", "broken", "one") as here:
        logs = [here.root / name / "log" for name in ("broken", "one")]
        assert eventually(lambda: all("Registered to" in log.read_text() for log in logs))
        shutil.rmtree(here.root / "broken" / "cache")
        (here.root / "broken" / "cache").touch()
        client = client_at(tmp_path / "w")
        run = here.build(client, *NODES, "--json")
        assert run.returncode == 0, run.stdout
        assert {outcome["worker"] for outcome in json.loads(run.stdout)} == {"one"}
        assert artifacts(client).items() <= single.items()


@every_only
def test_a_build_goes_on_where_its_killed_client_was(
    single: dict[str, bytes], tmp_path: Path
) -> None:
    with cluster(tmp_path / "c", "one") as here:
        first, second = client_at(tmp_path / "first"), client_at(tmp_path / "second")
        process = subprocess.Popen(
            here.arguments(*NODES),
            cwd=first.root,
            env=here.environment(first.root),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()
        process.kill()
        process.communicate()
        run = here.build(second, *NODES)
        assert run.returncode == 0, run.stdout
        assert len(made(run, "recalled")) >= 4
        files = artifacts(second)
        assert files.items() <= single.items()
        assert here.runs("one") == len(files)


def test_a_worker_of_another_npumake_is_refused_with_the_difference(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(REPO / "pipeline", other, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "npumake" / "digest.py").open("a") as file:
        file.write("\nOTHER = 1\n")
    with cluster(tmp_path / "c") as here:
        here.start_worker("old", PYTHONPATH=str(other))
        run = here.build(client_at(tmp_path / "w"))
        assert run.returncode == 4
        assert "no worker of the cluster fits" in run.stdout
        assert "has code " in run.stdout
        assert here.runs("old") == 0


@every_only
def test_workers_that_share_no_store_with_the_client_are_an_error(
    pair: Cluster, tmp_path: Path
) -> None:
    client = client_at(tmp_path / "w")
    run = subprocess.run(
        pair.arguments(),
        cwd=client.root,
        env={**pair.environment(client.root), "NPUMAKE_CACHE_REMOTE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 5
    assert "share no store" in run.stdout


def test_an_absent_scheduler_is_an_error_that_names_it(tmp_path: Path) -> None:
    client = client_at(tmp_path / "w")
    arguments = ("--executor", "dask", "--scheduler", "tcp://127.0.0.1:9")
    brief = {"NPUMAKE_CLUSTER_WAIT": "1"}
    run = client.npumake("build", *arguments, environment=brief, check=False)
    assert run.returncode == 4
    assert "no scheduler answers" in run.stdout
    assert "tcp://127.0.0.1:9" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_a_folder_is_no_address_of_a_scheduler(tmp_path: Path) -> None:
    run = client_at(tmp_path / "w").npumake("worker", str(tmp_path), check=False)
    assert run.returncode == 2
    assert "is a folder, not the address of a scheduler" in run.stdout + run.stderr


def test_a_worker_says_which_scheduler_file_it_waits_for(tmp_path: Path) -> None:
    run = client_at(tmp_path / "w").npumake("worker", "absent.json", "--version")
    assert "waiting for scheduler file absent.json" in run.stderr


def test_the_examples_are_whole() -> None:
    folder = REPO / "examples" / "cluster"
    assert yaml.safe_load((folder / "jobqueue.yaml").read_text())["jobqueue"]["slurm"]["cores"]
    cluster = yaml.safe_load((folder / "kubernetes.yaml").read_text())
    (worker,) = cluster["spec"]["worker"]["spec"]["containers"]
    assert worker["args"][:2] == ["npumake", "worker"]
    subprocess.run(["sh", "-n", folder / "ssh.sh"], check=True)
    compile((folder / "slurm.py").read_text(), "slurm.py", "exec")
