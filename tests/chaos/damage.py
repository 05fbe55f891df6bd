"""Damage to what a build remembers: bits flipped, files cut, emptied, removed, exchanged, replayed.

Nothing that is remembered decides what an artifact is: each is a mutant that changes no byte, and
makes nothing where the artifact, or its blob and its record, are still there.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from chaos.laboratory import Laboratory
from chaos.mutations import NOBODY, Mutant, Node, edited, modules, stamp, written
from npumake import digest

STAMP = r"never built here|the seal of its stamp is wrong"
ARTIFACT = r"{} (is missing|was changed since it was built)"


def damaged(
    rng: random.Random, lab: Laboratory, file: Path, others: list[Path]
) -> Callable[[], object]:
    """One kind of damage to a file; gives what repairs it."""
    data = file.read_bytes()
    bit, cut = rng.randrange(8 * len(data)), rng.randrange(len(data))
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    kinds = [bytes(flipped), bytes(flipped), data[:cut], b"", None]
    kinds += [other.read_bytes() for other in others if other.read_bytes() != data][:1]
    kinds += [old for old in lab.past.get(str(file), []) if old != data][-1:]
    undo = written(file, data)
    if (chosen := rng.choice(kinds)) is None:
        file.unlink()
    else:
        file.write_bytes(chosen)
    return undo


def memo(pattern: str) -> Callable[[Laboratory, random.Random], Mutant]:
    """What only makes a build faster: nobody notices."""

    def mutant(lab: Laboratory, rng: random.Random) -> Mutant:
        files = sorted(lab.workspace.root.glob(pattern))
        file = rng.choice(files)
        undo = damaged(rng, lab, file, [other for other in files if other != file])
        return Mutant(f"damage to {file.name}", "", NOBODY, undo, same=True, reversible=False)

    return mutant


def stamps(lab: Laboratory, rng: random.Random) -> Mutant:
    """The artifact is there and its stamp is not believed: it is recalled."""
    files = sorted(set(lab.project.glob("out/.npumake/*.json")) - {lab.plan_file})
    file = rng.choice(files)
    undo = damaged(rng, lab, file, [other for other in files if other != file])
    is_old = (
        any(file.read_bytes() == old for old in lab.past.get(str(file), []))
        if file.exists()
        else False
    )
    leaf = "." if is_old else STAMP
    return Mutant(f"damage to stamp {file.name}", leaf, NOBODY, undo, same=True, reversible=False)


def blob_of(lab: Laboratory, node: Node) -> Path:
    name = stamp(lab, node)["digest"]
    return lab.workspace.root / "cache/blobs" / name[:2] / name[2:]


def record_of(lab: Laboratory, node: Node) -> Path:
    name = digest.of_document(stamp(lab, node)["document"])
    return lab.workspace.root / "cache/records" / name[:2] / f"{name[2:]}.json"


def artifact(
    lab: Laboratory, rng: random.Random, kept: Callable[[Laboratory, Node], Path] | None = None
) -> Mutant:
    """An artifact, and what the store has of it: then it is made again, and nothing else is."""
    plan = lab.plan()
    node = rng.choice(plan)
    undo = [damaged(rng, lab, lab.project / node["path"], [])]
    touched = NOBODY
    if kept:
        file = kept(lab, node)
        touched = frozenset(n["name"] for n in plan if kept(lab, n) == file)
        undo.append(damaged(rng, lab, file, [kept(lab, n) for n in plan if kept(lab, n) != file]))
    leaf = ARTIFACT.format(node["path"]) + "|the cached artifact was damaged and is quarantined"
    what = f"damage to {node['path']}" + (f" and {kept.__name__}" if kept else "")
    # What was built is right again; the store is as it was, and what was set aside is away.
    return Mutant(
        what, leaf, touched, undo[-1] if kept else lambda: None, same=True, reversible=False
    )


def artifact_and_blob(lab: Laboratory, rng: random.Random) -> Mutant:
    return artifact(lab, rng, blob_of)


def artifact_and_record(lab: Laboratory, rng: random.Random) -> Mutant:
    return artifact(lab, rng, record_of)


def closure_and_code(lab: Laboratory, rng: random.Random) -> Mutant:
    """Without the closure of what was made, `why` cannot name the module, and says no other."""
    file = rng.choice(modules(lab, "(stages|kernels|engine|graph)/"))
    shutil.rmtree(lab.workspace.root / "cache/closures")
    found = edited(lab, file, f"{file.read_text()}\n_MORE = {rng.randrange(1000)}\n", exact=True)
    return found._replace(leaf=f"{found.leaf}|the code of the stage changed" if found.leaf else "")


DAMAGE: Mapping[str, Callable[[Laboratory, random.Random], Mutant]] = {
    "plan": memo("projects/*/out/.npumake/plan.json"),
    "stamp": stamps,
    "record": memo("cache/records/*/*.json"),
    "blob": memo("cache/blobs/*/*"),
    "memo table": memo("cache/*.json"),
    "seal": memo("cache/seals/*.json"),
    "closure": memo("cache/closures/*.json"),
    "doit's notes": memo(".doit.db*"),
    "artifact": artifact,
    "artifact and blob": artifact_and_blob,
    "artifact and record": artifact_and_record,
    "closure and code": closure_and_code,
}
