"""Making one node: nothing is published that was made from something else than its key says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from npumake.cli.projects import selected
from npumake.errors import CacheError
from npumake.make.build import Build
from npumake.make.maker import make
from npumake.progress import listening
from workspaces import REPO, Workspace


def the_build(workspace: Workspace) -> Build:
    (build,) = selected(workspace.root, ["digits"], paranoid=False)
    return build


def make_until(build: Build, stage: str) -> None:
    """Make every node before `stage`."""
    for node in build.plan.nodes:
        if node.stage == stage:
            return
        make(build, node)


def test_an_input_that_changes_while_a_stage_runs_is_not_published(fresh: Workspace) -> None:
    build = the_build(fresh)
    make_until(build, "statistics")
    node = build.plan.node("digits:statistics")
    samples = build.artifact(build.plan.node("digits:samples"))

    def tamper(what: str, done: int, total: int) -> None:
        if done == total // 2:
            with samples.open("r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"\x01")

    with listening(tamper), pytest.raises(CacheError, match=r"samples\.npz changed while"):
        make(build, node)
    assert not build.artifact(node).exists()
    assert build.stamp(node) is None


def test_a_source_that_changes_while_a_stage_runs_is_not_published(fresh: Workspace) -> None:
    build = the_build(fresh)
    make_until(build, "samples")
    node = build.plan.node("digits:samples")
    sources = build.sources(node)
    last = Path(sources["data.image.files"][-1].path)
    last.write_bytes(last.read_bytes()[:-1] + b"\x09")
    with pytest.raises(CacheError, match="changed while it was being used"):
        sources["data.image.files"][-1].read()


def test_a_failure_is_not_remembered(fresh: Workspace) -> None:
    sample = fresh.project / "samples" / "0003.npy"
    good = sample.read_bytes()
    sample.write_bytes(b"not an array")
    build = the_build(fresh)
    make_until(build, "samples")
    node = build.plan.node("digits:samples")
    with pytest.raises(Exception, match="npy"):
        make(build, node)
    sample.write_bytes(good)
    assert make(build, node).how == "made"


def test_made_then_recalled_then_current(fresh: Workspace) -> None:
    build = the_build(fresh)
    node = build.plan.nodes[0]
    assert make(build, node).how == "made"
    assert build.is_current(node)
    build.artifact(node).unlink()
    assert not build.is_current(node)
    assert make(build, node).how == "recalled"
    assert build.is_current(node)


def test_the_key_holds_no_path_of_this_machine(fresh: Workspace) -> None:
    build = the_build(fresh)
    for node in build.plan.nodes[:1]:
        document = build.document(node, {})
        assert str(fresh.root) not in str(document)
        assert set(document) == {
            "stage",
            "code",
            "tools",
            "params",
            "target",
            "inputs",
            "sources",
            "traced",
        }


def test_every_record_in_the_store_fits_the_published_schema(built_once: Workspace) -> None:
    schema = json.loads((REPO / "schemas" / "record.schema.json").read_bytes())
    records = list((built_once.root / "cache" / "records").glob("*/*.json"))
    assert len(records) >= 14
    for record in records:
        jsonschema.validate(json.loads(record.read_bytes()), schema)
