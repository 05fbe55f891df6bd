"""What a stage distributes runs on all workers of a cluster, and changes no byte."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import Cluster, artifacts, client_at, cluster
from forks import run_python
from remote_servers import faulty
from workspaces import Workspace, every_only, lay_out, lay_out_none, shared_data

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="ends processes as Linux does"),
]
SEARCH = "search: {calibration: {method: default}}\n"
MODELWISE = "vendor: {calibration: {method: modelwise, modelwise: {similarity: 1.0}}}\n"
BEST = "best: {calibration: {recipe: best}}\n"
IMAGES = shared_data() / "images" / "imagenet500"
MOBILENET = shared_data() / "models" / "classification" / "mobilenet_v1_0.25_224_float.tflite"
MOBILENET_PROJECT = """\
model: {{path: {model}}}
inputs: {{'*': {{type: rgb, layout: NHWC, mean: 127.5, scale: 0.00784313725490196}}}}
data:
  '*':
    files: {images}/*.jpg
    channels: rgb
    transforms: [padded_center_crop, resize: {{target_size: 224, mode: opencv}}]
calibration: {{method: default}}
targets: [rdk-x5, ara240]
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("pair") / "c"
    with faulty() as server, cluster(root, "one", "two", remote=server.url) as here:
        yield here


def workers_of_parts(here: Cluster) -> dict[str, int]:
    return {name: here.records(name)[1].total() for name in ("one", "two")}


def same_bytes(here: Cluster, client: Workspace, alone: Workspace, *names: str) -> None:
    """Workers make parts, none twice, and the artifacts are those of one process."""
    before = workers_of_parts(here)
    run = here.build(client, *names)
    assert run.returncode == 0, run.stdout + run.stderr
    alone.npumake("build", *names)
    assert artifacts(client) == artifacts(alone)
    after = workers_of_parts(here)
    assert sum(after.values()) > sum(before.values())
    nodes, parts = here.records()
    assert max(nodes.values()) == max(parts.values()) == 1


def test_a_search_on_two_workers_finds_the_recipe_of_one_process(
    pair: Cluster, tmp_path: Path
) -> None:
    client, alone = (client_at(tmp_path / name, SEARCH) for name in ("client", "alone"))
    same_bytes(pair, client, alone, "digits@search:rdk-x5/compiled")


def test_the_search_of_the_vendors_is_the_same_on_two_workers(
    pair: Cluster, tmp_path: Path
) -> None:
    client, alone = (client_at(tmp_path / name, MODELWISE) for name in ("client", "alone"))
    same_bytes(pair, client, alone, "digits@vendor:rdk-x5/recipe")
    assert "npumake.quant.search.modelwise.candidate_trial" in pair.part_names()


def test_a_comparison_of_all_samples_is_the_same_on_two_workers(
    pair: Cluster, tmp_path: Path
) -> None:
    client, alone = (client_at(tmp_path / name) for name in ("client", "alone"))
    for workspace in (client, alone):
        workspace.project.joinpath("comparison.yaml").write_text("samples: all\n")
    same_bytes(pair, client, alone, "digits@kl:ara240/comparison")
    assert "npumake.debug.compared_batches.compared_batch" in pair.part_names()


def test_the_sensitivity_of_nodes_is_the_same_on_two_workers(
    pair: Cluster, tmp_path: Path, built: Workspace
) -> None:
    goal = ("precision", "digits:rdk-x5", "--cosine", "0.9998", "--json")
    client = client_at(tmp_path / "client")
    before = workers_of_parts(pair)

    def precision(*place: str) -> subprocess.CompletedProcess[str]:
        return run_python(
            *("-m", "npumake", *goal, "--executor", "dask", *place),
            folder=client.root,
            environment=pair.environment(client.root),
        )

    run = precision("--scheduler", pair.scheduler)
    alone = built.npumake(*goal, check=False)
    assert json.loads(run.stdout) == json.loads(alone.stdout)
    after = workers_of_parts(pair)
    assert sum(after.values()) > sum(before.values())
    again = precision(
        "--scheduler", "tcp://127.0.0.1:9"
    )  # all is in the store: no cluster is needed
    assert json.loads(again.stdout)["trials"]["measured"] == 0


@every_only
def test_all_switches_of_digits_and_variants_of_a_detector_are_the_same(
    pair: Cluster, tmp_path: Path
) -> None:
    same_bytes(pair, *(client_at(tmp_path / name, BEST) for name in ("client", "alone")))
    detectors = (lay_out(tmp_path / f"{n}d", "shapes-detector") for n in ("client", "alone"))
    same_bytes(pair, *detectors)


@every_only
@pytest.mark.skipif(not IMAGES.is_dir(), reason="needs the shared images")
def test_mobilenet_with_500_images_is_the_same(pair: Cluster, tmp_path: Path) -> None:
    same_bytes(pair, *(mobilenet(tmp_path / name) for name in ("client", "alone")))


def mobilenet(root: Path) -> Workspace:
    workspace = lay_out_none(root, "mobilenet")
    workspace.project.mkdir()
    text = MOBILENET_PROJECT.format(model=MOBILENET, images=IMAGES)
    workspace.project.joinpath("project.yaml").write_text(text)
    return workspace
