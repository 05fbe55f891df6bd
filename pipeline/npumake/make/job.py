"""Job: one node of a build as a document, for a process without the project's files.

The client packs it: the node, its key document, and the digests of all inputs of its stage. The
worker lays the files out in a folder of its own and runs the node as any build does. Its result is
data too, including errors of the project. An error of the machine is raised, so that the cluster
tries another one.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from npumake import digest, errors
from npumake.cache.store import Record
from npumake.digest import Json
from npumake.errors import CacheError, PipelineError, Route, StageError
from npumake.lifetime.temporaries import temporary_folder
from npumake.make.build import Build
from npumake.make.carrier import Blob, Carrier
from npumake.make.maker import attempt
from npumake.make.memory import BuildMemory
from npumake.make.node import Node, NodeKey, plan_from
from npumake.make.remote import finished
from npumake.make.why import differences
from npumake.progress import hearing
from npumake.project.files import SourceFile

# Errors that travel as data; any other travels as its nearest base here.
KINDS: Mapping[str, type[PipelineError]] = {
    kind.__name__: kind
    for kind in (
        errors.ProjectError,
        errors.GraphError,
        errors.StageError,
        errors.GateError,
        errors.LockError,
        errors.PipelineError,
    )
}


class MachineError(Exception):
    """A machine failed to build a node: its disk or its connection failed. Another one may succeed.

    `worker` is its address, if any.
    """

    def __init__(self, reason: str, worker: str = "") -> None:
        super().__init__(reason, worker)
        self.worker = worker

    def __str__(self) -> str:
        return str(self.args[0])


def packed(build: Build, node: Node, document: NodeKey, carrier: Carrier) -> Json:
    """The job of `node`; its inputs and sources are in the shared store afterwards."""
    others = dict.fromkeys((*node.inputs.values(), *node.traced))
    digests = build.made_inputs(node)
    sources = build.sources(node)
    inputs = [
        (str(build.artifact(build.plan.node(name))), digests[stage])
        for stage, name in node.inputs.items()
    ]
    files = [(file.path, file.digest) for group in sources.values() for file in group]
    blobs = iter(carrier.send_all([*inputs, *files]))
    return {
        "project": build.plan.project,
        "nodes": [digest.plain(entry) for entry in (*map(build.plan.node, others), node)],
        "document": document,
        "inputs": {name: digest.plain(next(blobs)) for name in node.inputs.values()},
        "sources": {
            route: [{"name": file.name, **digest.plain(next(blobs))} for file in group]
            for route, group in sources.items()
        },
        "provenance": {
            name: digest.plain(record) for name, record in build.provenance(node).items()
        },
    }


@dataclass(frozen=True)
class JobBuild(Build):
    """The build of one job, in a folder of the worker. It writes no stamps."""

    job: Json = field(default_factory=dict)

    def sources(self, node: Node) -> Mapping[str, tuple[SourceFile, ...]]:
        return {
            route: tuple(self._source_file(route, **file) for file in files)
            for route, files in self.job["sources"].items()
        }

    def made_inputs(self, node: Node) -> Mapping[str, str]:
        return {stage: self.job["inputs"][name]["digest"] for stage, name in node.inputs.items()}

    def provenance(self, node: Node) -> Mapping[str, Record]:
        return {name: Record(**record) for name, record in self.job["provenance"].items()}

    def write_stamp(self, node: Node, document: NodeKey, artifact: str, flush: bool = True) -> None:
        pass

    def lay_out(self, carrier: Carrier) -> None:
        """Fetches inputs and sources. Raises CacheError."""
        files = [
            (Blob(**blob), self.artifact(self.plan.node(name)))
            for name, blob in self.job["inputs"].items()
        ]
        for route, sources in self.job["sources"].items():
            files += [
                (Blob(source["digest"], source["size"]), self._source_path(route, source["name"]))
                for source in sources
            ]
        carrier.bring_all(files)

    def _source_file(self, route: str, name: str, digest: str, size: int) -> SourceFile:
        return SourceFile(name, str(self._source_path(route, name)), digest)

    def _source_path(self, route: str, name: str) -> Path:
        """A folder per key: two keys may name files alike. Raises ValueError for a name that leads
        out of it."""
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/"):
            raise ValueError(f"the source `{name}` leads out of its folder")
        place = [*self.job["sources"]].index(route)
        return self.directory / "sources" / str(place) / name


@contextmanager
def job_build(job: Json, memory: BuildMemory) -> Iterator[JobBuild]:
    """The build of a job, in a temporary folder."""
    with temporary_folder() as folder:
        directory = folder / job["project"]
        plan = plan_from({"project": job["project"], "nodes": job["nodes"]})
        memory.restored.add(directory)  # the client has queried the remote,
        memory.checked[directory] = None  # and looked for files and compilers
        try:
            yield JobBuild(directory, plan, memory, job=job)
        finally:
            memory.restored.discard(directory)
            del memory.checked[directory]


def performed(job: Json, memory: BuildMemory, carrier: Carrier) -> Json:
    """Builds the node of `job` and shares its artifact. Raises MachineError."""
    messages: list[str] = []
    with job_build(job, memory) as build, hearing(messages.append):
        try:
            result = _result(build, build.plan.nodes[-1], carrier)
        except (CacheError, OSError) as error:
            raise MachineError(str(error)) from None
        except PipelineError as error:
            result = {"error": _error_document(error, build.directory)}
        except Exception:  # noqa: BLE001  # a bug: its traceback is data for the client
            result = {"bug": traceback.format_exc()}
    return {**result, "messages": messages}


def _result(build: JobBuild, node: Node, carrier: Carrier) -> Json:
    expected = build.job["document"]
    document = json.loads(json.dumps(build.document(node, build.made_inputs(node))))
    if document != expected:
        changes = differences(expected, document, node.places, build.memory.closure)
        message = f"this worker computes another key for `{node.name}`: {'; '.join(changes)}"
        raise StageError(message, None, "install the same packages on the client and its workers")
    build.lay_out(carrier)
    outcome = attempt(build, node)
    path = build.artifact(node)
    blob = carrier.send(path)
    upload_record(build.memory)
    seconds = round(outcome.seconds, 3)
    return {"how": outcome.how, "seconds": seconds, "blob": digest.plain(blob)}


def upload_record(memory: BuildMemory) -> None:
    """Signs and uploads the record if this worker has a key, so that a build whose client was
    killed can continue from it."""
    uploader = memory.layered.uploader() if memory.layered else None
    if uploader is not None:
        finished(uploader)


def _error_document(error: PipelineError, directory: Path) -> Json:
    kind = next(base.__name__ for base in type(error).__mro__ if base.__name__ in KINDS)
    return {
        "kind": kind,
        "what": error.what,
        "where": None if error.where is None else str(error.where),
        "is_route": isinstance(error.where, Route),
        "hint": error.hint,
        "directory": str(directory),
    }


def error_in(document: Json, build: Build, node: Node) -> PipelineError:
    """The error of a result, with the places and paths of the client's project."""

    def local(text: str) -> str:
        return _with_paths(text, document["directory"], build, node)

    where: Any = document["where"]
    if where is not None:
        where = Route(where) if document["is_route"] else local(where)
    error = KINDS[document["kind"]](local(document["what"]), where, local(document["hint"]))
    return build.with_place(node, error)


def _with_paths(text: str, directory: str, build: Build, node: Node) -> str:
    """`text` with the worker's paths replaced by those of the client."""
    if directory not in text:
        return text
    for place, files in enumerate(build.sources(node).values()):
        for file in files:
            text = text.replace(f"{directory}/sources/{place}/{file.name}", file.path)
    return text.replace(directory, str(build.directory))
