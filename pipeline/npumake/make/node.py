"""Node: one stage of one project, for one variant and target; ProjectPlan: all nodes of a project.

Plain data for list, why, doit and tests, stored as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypedDict

from npumake.digest import Json
from npumake.project.doc import Doc
from npumake.project.files import FileSource

MODEL_SUFFIX = ".onnx"
REFUSED = "refused"  # a parameter of stages that join, and the option of their tasks

# By the name of each node that was not built, the message and the hint of the error.
Refusals = Mapping[str, tuple[str, str]]


class NodeKey(TypedDict):
    """The document that names an artifact: everything that can change it, and nothing else.

    It has no path of this machine and no clock. Its SHA-256 is the name of the record in the store.
    """

    stage: str
    code: Annotated[str, Doc("Digest of the stage's source closure, without comments.")]
    tools: Annotated[Mapping[str, str], Doc("Versions of the libraries that code imports.")]
    params: Annotated[Mapping[str, Any], Doc("Sections of the YAML that the stage reads.")]
    target: Annotated[Any, Doc("The target's document, if the stage has the input `target`.")]
    inputs: Annotated[Mapping[str, str], Doc("Digests of its input stages.")]
    sources: Annotated[
        Mapping[str, Mapping[str, str]], Doc("Digests of files by YAML key and by name.")
    ]
    traced: Annotated[
        Mapping[str, str], Doc("Keys of the nodes whose provenance it shows, by node.")
    ]


class KeptRecord(TypedDict):
    """A record in the store: the artifact of a key."""

    document: NodeKey
    digest: Annotated[str, Doc("SHA-256 of the artifact, the name of its blob.")]
    size: Annotated[int, Doc("Size of the artifact in bytes.")]
    seconds: Annotated[float | None, Doc("Duration of the stage in seconds, if measured.")]
    seal: Annotated[str, Doc("SHA-256 over the key, digest, size and time.")]


@dataclass(frozen=True)
class Node:
    """One stage for one variant and target.

    `path` is that of the artifact, relative to the project. `inputs` are node names by stage.
    `params` are the sections of YAML the stage reads, `places` the positions of their keys. `twin`
    is an earlier node with the same key: this one waits for it and fetches its artifact. `traced`
    are the nodes whose keys it reports, which are part of its own key. The code of `modules` and of
    what they import is part of its key.
    """

    name: str
    stage: str
    modules: tuple[str, ...]
    summary: str
    variant: str | None
    target: str | None
    path: str
    inputs: Mapping[str, str]
    params: Json
    target_document: Json
    sources: tuple[FileSource, ...]
    places: Mapping[str, str]
    twin: str | None = None
    traced: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a path that leads out of the project's `out/`."""
        parts = self.path.split("/")
        if parts[0] != "out" or len(parts) < 2 or not all(parts) or {".", ".."} & set(parts):
            raise ValueError(f"an artifact is in out/, not at {self.path}")

    @property
    def group(self) -> str:
        """The project, or a variant of it: `digits`, `digits@p999`."""
        return self.name.partition(":")[0]

    @property
    def is_model(self) -> bool:
        """Whether its artifact is a graph: a link of the chain of a compiled file."""
        return self.path.endswith(MODEL_SUFFIX) and self.stage != "compiled"

    @property
    def short(self) -> str:
        """The name within its group: `statistics`, `rdk-x5/calibrated`."""
        return f"{self.target}/{self.stage}" if self.target else self.stage

    @property
    def joins(self) -> bool:
        """Whether its inputs are those of every target and variant, as a report's are."""
        return any(":" in build for build in self.inputs)


@dataclass(frozen=True)
class ProjectPlan:
    """The nodes of one project, each behind its inputs."""

    project: str
    nodes: tuple[Node, ...]

    def node(self, name: str) -> Node:
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}


def plan_from(document: Json) -> ProjectPlan:
    """The inverse of `digest.plain(plan)`. Raises KeyError or TypeError for anything else."""
    nodes = []
    for entry in document["nodes"]:
        sources = tuple(
            FileSource(**{**source, "keys": tuple(source["keys"])}) for source in entry["sources"]
        )
        lists = {name: tuple(entry[name]) for name in ("modules", "traced")}
        nodes.append(Node(**{**entry, **lists, "sources": sources}))
    return ProjectPlan(document["project"], tuple(nodes))


def without_refused(node: Node, refusals: Refusals | None) -> Node:
    """The node without the inputs that were not built; their errors are among its parameters."""
    if not refusals:
        return node
    inputs = {build: name for build, name in node.inputs.items() if name not in refusals}
    errors = {build: [*refusals[name]] for build, name in node.inputs.items() if name in refusals}
    traced = tuple(name for name in node.traced if name not in refusals)
    return replace(node, inputs=inputs, traced=traced, params={**node.params, REFUSED: errors})


def needed_by(names: Iterable[str], inputs: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """`names` and all their inputs, transitively."""
    needed: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting |= {*inputs.get(name, ())} - needed
    return frozenset(needed)
