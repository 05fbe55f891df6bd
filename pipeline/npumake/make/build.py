"""Build: the nodes of a project with their keys and stamps, and which of them are current.

A node is current when its key document equals that of its stamp and its artifact has the stamp's
digest. No clock and no database is involved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from npumake import digest
from npumake.cache.publish import replacing
from npumake.cache.signature import Signature, signature_of
from npumake.cache.store import Record
from npumake.digest import Json
from npumake.errors import CacheError, PipelineError, ProjectError, Route
from npumake.late import when_used
from npumake.lifetime.temporaries import sweep_below
from npumake.make.memory import BuildMemory
from npumake.make.missing import HINT_NOT_PLAIN, file_named, no_file
from npumake.make.node import Node, NodeKey, ProjectPlan
from npumake.make.plugin_code import plugin_tools
from npumake.make.programs import compilers, converters
from npumake.make.stamp import Stamp, read_stamp, stamp_bytes
from npumake.make.why import differences
from npumake.project.files import FileSource, SourceFile, refuse_huge, source_files

if TYPE_CHECKING:
    from npumake.make.lock import Lock
with when_used("npumake.dialects.advice"):  # an error needs it, and a YAML writer with it
    from npumake.dialects import advice
with when_used("npumake.make.placing"):
    from npumake.make import placing

STAMPS = "out/.npumake"
# Neither key changes an artifact.
NOT_KEYED = (("evaluation", "artifacts"), ("evaluation", "jobs"))


class NodeState(NamedTuple):
    """The effect of a build on a node, and the reason.

    `digest` is known unless the node would run. A node `follows` when only its inputs give the
    reason.
    """

    status: Literal["current", "cached", "would run"]
    reasons: tuple[str, ...]
    digest: str | None
    follows: bool = False


@dataclass(frozen=True)
class Build:
    """A build of the project in `directory`, an absolute path; `lock` is that of a frozen one."""

    directory: Path
    plan: ProjectPlan
    memory: BuildMemory
    lock: Lock | None = None
    _stamps: dict[str, tuple[Signature | None, Stamp | None]] = field(default_factory=dict)

    # -- files -----------------------------------------------------------------------------

    def artifact(self, node: Node) -> Path:
        return self.directory / node.path

    def stamp(self, node: Node) -> Stamp | None:
        """The stamp, read once until it is replaced, which changes its inode or time. None if it
        is absent or damaged: the artifact is then built or fetched."""
        path = self._stamp_file(node)
        signature = signature_of(path)
        entry = self._stamps.get(node.name)
        if entry is None or entry[0] != signature:
            entry = self._stamps[node.name] = (signature, read_stamp(path, node))
        return entry[1]

    def write_stamp(self, node: Node, document: NodeKey, artifact: str, flush: bool = True) -> None:
        """`flush` as in npumake.cache.publish: a damaged stamp has a wrong seal."""
        with replacing(Path(self._stamp_file(node)), flush) as temporary:
            temporary.write_bytes(stamp_bytes(node, Stamp(document, artifact)))
        self.memory.keep_closure(self.memory.code.closure(*node.modules))

    def sources(self, node: Node) -> Mapping[str, tuple[SourceFile, ...]]:
        """The present files of a node. Raises ProjectError for a key without any."""
        by_route: dict[str, tuple[SourceFile, ...]] = {}
        for source in node.sources:
            named = source_files(self.directory, source)
            if not named:
                raise no_file(self.directory, source, self.vendor_dialect)
            by_route[source.route] = tuple(self._source(source, *file) for file in named)
        return by_route

    def _source(self, source: FileSource, name: str, path: str) -> SourceFile:
        if source.keys[0] == "model":
            refuse_huge(path, Route(source.route))
        try:
            return SourceFile(name, path, self.memory.files.of(path))
        except FileNotFoundError:  # removed meanwhile, or unreachable
            message = f"`{name}` is not a plain file, or was removed meanwhile"
            raise ProjectError(message, Route(source.route), HINT_NOT_PLAIN) from None

    # -- keys ------------------------------------------------------------------------------

    def document(self, node: Node, inputs: Mapping[str, str]) -> NodeKey:
        """The key document of `node`, with the digests of its `inputs` by stage. Raises
        ProjectError."""
        code = self.memory.code.closure(*node.modules)
        sources = self.sources(node)
        names = (file.name for files in sources.values() for file in files)
        models = [file.name for file in sources.get("model.path", ())]
        return {
            "stage": node.stage,
            "code": code.digest,
            "tools": {
                **code.tools,
                **converters(names),
                **compilers(node),
                **plugin_tools(node, models, self.memory.files),
            },
            "params": _without_paths(node),
            "target": node.target_document,
            "inputs": dict(inputs),
            "sources": {
                route: {file.name: file.digest for file in files}
                for route, files in sources.items()
            },
            "traced": {
                name: digest.of_document(record.document)
                for name, record in self.provenance(node).items()
            },
        }

    def provenance(self, node: Node) -> Mapping[str, Record]:
        """The record of each node that this one reports on, as it was last built. Raises
        CacheError."""
        return {name: self._record(self.plan.node(name)) for name in node.traced}

    def _record(self, node: Node) -> Record:
        stamp, signature = self.stamp(node), signature_of(self.artifact(node))
        if stamp is None or signature is None:
            raise CacheError(f"`{node.name}` has not been built")
        return Record(stamp.document, stamp.digest, signature.size)

    def made_inputs(self, node: Node) -> Mapping[str, str]:
        """The digests of the node's inputs as they were last built. Raises CacheError."""
        digests = {}
        for stage, name in node.inputs.items():
            stamp = self.stamp(self.plan.node(name))
            if stamp is None:
                raise CacheError(f"`{name}` has not been built")
            digests[stage] = stamp.digest
        return digests

    def sweep(self) -> None:
        """Removes the remains of killed processes in `out/`."""
        sweep_below(f"{self.directory}/out")

    # -- freshness -------------------------------------------------------------------------

    def is_current(self, node: Node) -> bool:
        """Called by doit after the inputs ran. A node that cannot be built is not."""
        try:
            document = self.document(node, self.made_inputs(node))
        except PipelineError:
            return False
        stamp = self.stamp(node)
        if stamp is None or stamp.document != document or not self.intact(node, stamp):
            return False
        if self.lock is not None and not self.lock.allows(node, stamp.digest):
            return False
        self.memory.keep_closure(self.memory.code.closure(*node.modules))
        return True

    def states(self, remote: bool = False) -> dict[str, NodeState]:
        """Each node's state by name, in order. Nothing runs; the remote is only queried with
        `remote`."""
        states: dict[str, NodeState] = {}
        for node in self.plan.nodes:
            states[node.name] = self._state(node, states, remote)
        return states

    def _state(self, node: Node, states: Mapping[str, NodeState], remote: bool) -> NodeState:
        waiting = [s for s, name in node.inputs.items() if states[name].digest is None]
        if waiting:
            reasons = tuple(f"{stage} would run" for stage in waiting)
            return NodeState("would run", reasons, None, follows=True)
        if anew := [name for name in node.traced if states[name].status != "current"]:
            return NodeState("would run", (f"reports how {anew[0]} was built",), None, follows=True)
        inputs = {stage: str(states[name].digest) for stage, name in node.inputs.items()}
        try:
            document = self.document(node, inputs)
        except PipelineError as error:
            return NodeState("would run", (self.with_place(node, error).what,), None)
        stamp = self.stamp(node)
        if stamp and stamp.document == document and self.intact(node, stamp):
            return NodeState("current", (), stamp.digest)
        return self._state_of(node, stamp, document, remote)

    def _state_of(
        self, node: Node, stamp: Stamp | None, document: NodeKey, remote: bool
    ) -> NodeState:
        """The state of a node that is not current, by the records in the stores."""
        key = digest.of_document(document)
        reasons = self._reasons(node, stamp, document)
        follows = stamp is not None and _differs_by_inputs(stamp.document, document)
        store = self.memory.near
        record = self.memory.recall_here(key)
        if record and store.has(record.digest):
            return NodeState("cached", reasons, record.digest, follows)
        if store.was_damaged(key) or (record and store.was_damaged(record.digest)):
            reasons = (*reasons, "the cached artifact was damaged and is quarantined")
        if remote and self.memory.layered:
            sentence, remote_record = self.memory.layered.opinion(key)
            reasons = (*reasons, f"remote: {sentence}")
            if remote_record is not None:
                return NodeState("cached", reasons, remote_record.digest, follows)
        return NodeState("would run", reasons, None, follows)

    def _reasons(self, node: Node, stamp: Stamp | None, document: NodeKey) -> tuple[str, ...]:
        if stamp is None:
            is_there = os.path.exists(self._stamp_file(node))
            return ("the seal of its stamp is wrong" if is_there else "never built here",)
        changed = differences(stamp.document, document, node.places, self.memory.closure)
        if changed:
            return changed
        missing = not self.artifact(node).is_file()
        return (f"{node.path} {'is missing' if missing else 'was changed since it was built'}",)

    def intact(self, node: Node, stamp: Stamp) -> bool:
        try:
            return self.memory.files.of(f"{self.directory}/{node.path}") == stamp.digest
        except FileNotFoundError:
            return False

    # -- errors ----------------------------------------------------------------------------

    def with_place(self, node: Node, error: PipelineError) -> PipelineError:
        """The error with the place of its YAML key, in the words of the project's dialect."""
        words = advice.wording_of(self.vendor_dialect)
        error.what, error.hint = words.text(error.what), words.text(error.hint)
        if not isinstance(error.where, Route):
            if self.vendor_dialect and isinstance(error.where, str):
                error.where = file_named(self.directory, node.sources, error.where)
            return error
        placing.place_error(error, str(error.where), node.places, Path(self.directory))
        return error

    @property
    def vendor_dialect(self) -> str | None:
        """The vendor's dialect of the project, if any."""
        dialects = (node.params.get("vendor_dialect") for node in self.plan.nodes)
        return next((str(name) for name in dialects if name), None)

    def _stamp_file(self, node: Node) -> str:
        folder = f"{STAMPS}/@{node.variant}" if node.variant else STAMPS
        return f"{self.directory}/{folder}/{node.short.replace('/', '.')}.json"


def _differs_by_inputs(old: NodeKey, new: NodeKey) -> bool:
    """Whether only inputs differ. If none does, the artifact itself changed."""
    return old["inputs"] != new["inputs"] and {**old, "inputs": new["inputs"]} == new


def _without_paths(node: Node) -> Json:
    """The node's sections. A file counts by name and content (`sources`), not by its folder."""
    if not node.sources:
        return node.params
    params = json.loads(json.dumps(node.params))
    for section, key in NOT_KEYED:
        if params.get(section) is not None:
            params[section].pop(key, None)
    for source in node.sources:
        *above, key = source.keys
        inside = params
        for part in above:
            inside = inside[int(part) if isinstance(inside, list) else part]
        if isinstance(inside, list):
            inside[int(key)] = None  # its place counts
        elif source.rest:
            inside[key] = source.rest
        else:
            del inside[key]
    return params
