"""Roots of a sweep: the keys that a workspace uses.

A node uses the record of its stamp, and the one that a build would look for now. The latter needs
no artifact: the digests of its inputs are in their records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from npumake.digest import of_document
from npumake.errors import PipelineError
from npumake.make.build import Build
from npumake.make.node import Node

DigestOf = Callable[[str], str | None]  # of the artifact of a key, None without a record


@dataclass
class NodeKeys:
    """The keys of a build's nodes. `unknown` nodes have none: their sources are absent, or the
    artifacts of their inputs are in no record."""

    stamped: dict[str, str] = field(default_factory=dict)
    by_node: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)

    @property
    def names(self) -> Mapping[str, str]:
        """The nodes by key."""
        pairs = [*self.stamped.items(), *self.by_node.items()]
        return {key: name for name, key in pairs}


def node_keys(build: Build, digest_of: DigestOf) -> NodeKeys:
    """The keys that the build uses; nothing runs."""
    keys = NodeKeys()
    artifacts: dict[str, str] = {}
    for node in build.plan.nodes:
        stamp = build.stamp(node)
        if stamp is not None:
            keys.stamped[node.name] = of_document(stamp.document)
            keys.codes.add(stamp.document["code"])
        key = _key(build, node, keys.by_node, artifacts)
        if key is None:
            keys.unknown.append(node.name)
            continue
        keys.by_node[node.name] = key
        artifact = digest_of(key)
        if artifact is None and stamp is not None and keys.stamped[node.name] == key:
            artifact = stamp.digest
        if artifact is not None:
            artifacts[node.name] = artifact
    return keys


def _key(
    build: Build, node: Node, keys: Mapping[str, str], artifacts: Mapping[str, str]
) -> str | None:
    """The key of a node, if its inputs and the nodes it reports on are known."""
    if not (artifacts.keys() >= {*node.inputs.values()} and keys.keys() >= {*node.traced}):
        return None
    inputs = {stage: artifacts[name] for stage, name in node.inputs.items()}
    try:
        document = build.document(replace(node, traced=()), inputs)
    except PipelineError:  # a source that is absent
        return None
    return of_document({**document, "traced": {name: keys[name] for name in node.traced}})
