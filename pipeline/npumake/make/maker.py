"""Builds one node: fetches its artifact by key, or runs its stage and stores the result.

If another build runs the same stage on the same inputs, this one waits and fetches the result.

The order of writing makes a crash harmless: blob, artifact, record, stamp. Each is published whole;
the next build completes one that died in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from npumake import digest
from npumake.cache.publish import replacing
from npumake.cache.store import Record, Store
from npumake.errors import CacheError, PipelineError, StageError
from npumake.lifetime.temporaries import sweep_folders
from npumake.make.batch import restore_once
from npumake.make.build import Build
from npumake.make.frozen import refuse_unlocked
from npumake.make.node import Node, NodeKey
from npumake.make.preflight import refuse_missing
from npumake.project.hints import hints_of
from npumake.project.reader import built
from npumake.project.sections import Sections
from npumake.stages.parameters import called, input_types, scored_artifact
from npumake.stages.stage import Artifact, stage_named
from npumake.targets.target import Target

T = TypeVar("T", bound=Artifact)
How = Literal["made", "recalled"]


class Outcome(NamedTuple):
    """How a node was built, in how many seconds.

    `unstored` lists failed writes of the cache, `note` is why the remote is not used, `worker` the
    one of a cluster that built it.
    """

    how: How
    seconds: float
    unstored: str = ""
    note: str = ""
    worker: str = ""


def make(build: Build, node: Node) -> Outcome:
    """Brings the artifact of `node` up to date; its inputs already are. Raises PipelineError."""
    try:
        return attempt(build, node)
    except PipelineError as error:
        raise build.with_place(node, error) from error.__cause__


def attempt(build: Build, node: Node) -> Outcome:
    """As `make`, but errors name the key of the YAML rather than its place."""
    start = time.perf_counter()
    try:
        how = _make(build, node)
    except MemoryError as error:
        hint = "use fewer threads: NPUMAKE_THREADS=1"
        raise StageError(f"`{node.name}` needs more memory than available", None, hint) from error
    seconds = time.perf_counter() - start
    return Outcome(how, seconds, build.memory.unstored, build.memory.note)


def _make(build: Build, node: Node) -> How:
    inputs = build.made_inputs(node)
    document = build.document(node, inputs)
    memory = build.memory
    restore_once(build)
    if recalled(build, node, document, memory.store):
        return "recalled"
    refuse_missing(build, node)
    with memory.turn(digest.of_document(document), node.name):
        if recalled(build, node, document, memory.near):  # another build has built it meanwhile
            return "recalled"
        _run(build, node, inputs, document)
    return "made"


def recalled(build: Build, node: Node, document: NodeKey, store: Store) -> bool:
    """Whether the artifact came from the store."""
    record = store.recall(digest.of_document(document))
    if record is None:
        return False
    refuse_unlocked(build, node, document, record.digest)
    if not store.fetch(record.digest, build.artifact(node)):
        return False
    build.write_stamp(node, document, record.digest, flush=False)
    return True


def _run(build: Build, node: Node, inputs: Mapping[str, str], document: NodeKey) -> None:
    """Runs the stage and stores its artifact."""
    store, path = build.memory.store, build.artifact(node)
    sweep_folders()
    start = time.perf_counter()
    value = run_stage(build, node, inputs)
    with replacing(path) as temporary:
        value.save(temporary)
        _refuse_changed_inputs(build, node, document)
        artifact = store.put(temporary)
        refuse_unlocked(build, node, document, artifact)
        size = temporary.stat().st_size
    seconds = round(time.perf_counter() - start, 3)
    store.remember(digest.of_document(document), Record(document, artifact, size, seconds))
    if not store.has(artifact):  # swept before its record was there
        store.put(path)
    build.write_stamp(node, document, artifact)


def run_stage(build: Build, node: Node, inputs: Mapping[str, str]) -> Artifact:
    stage, hints = stage_named(node.stage), hints_of(Sections)
    values: dict[str, Any] = {
        name: built(hints[name], node.params[name]) for name in stage.sections
    }
    types = input_types(node.stage)
    for name, source in node.inputs.items():
        if not stage.joins and name not in stage.inputs:  # only a link of its chain
            continue
        kind = types[stage.inputs[0] if stage.joins else name]
        values[name] = loaded(build, source, inputs[name], kind)
    if stage.joins:
        values = {**{n: values.pop(n) for n in stage.sections}, stage.inputs[0]: values}
    special = {name: SPECIAL_VALUES[name](build, node) for name in stage.special}
    return called(node.stage, values | special)


def _chain(build: Build, node: Node) -> dict[str, str]:
    """The digests of the models among the inputs, by stage."""
    digests = build.made_inputs(node)
    models = {name for name in node.inputs if build.plan.node(node.inputs[name]).is_model}
    return {name: digests[name] for name in models}


SPECIAL_VALUES: Mapping[str, Callable[[Build, Node], Any]] = {
    "artifact_name": lambda _, node: scored_artifact(node.stage),
    "chain": _chain,
    "provenance": lambda build, node: build.provenance(node),
    "refused": lambda _, node: node.params.get("refused", {}),
    "sources": lambda build, node: build.sources(node),
    "target": lambda _, node: built(Target, node.target_document),
    "vendor_dialect": lambda _, node: node.params["vendor_dialect"],
    "vendor_document": lambda _, node: node.params["vendor_document"],
}


def loaded(build: Build, name: str, expected: str, kind: type[T]) -> T:
    """The artifact of an input. Raises CacheError if it is not the one of the key."""
    node = build.plan.node(name)
    path = build.artifact(node)
    if build.memory.files.of(path) != expected:
        raise CacheError(f"{node.path} changed while it was being used", hint="run it again")
    return kind.load(path)


def _refuse_changed_inputs(build: Build, node: Node, document: NodeKey) -> None:
    """Raises CacheError if an input changed while the stage ran."""
    for role, name in node.inputs.items():
        source = build.plan.node(name)
        if build.memory.files.of(build.artifact(source)) != document["inputs"][role]:
            raise CacheError(f"{source.path} changed while it was being used", hint="run it again")
    if build.document(node, document["inputs"]) != document:
        raise CacheError(
            f"an input of `{node.name}` changed while it was being built",
            hint="nothing was published; run it again",
        )
