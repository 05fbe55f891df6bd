"""The lock file: one artifact a line, in an order and with headings that git merges."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import pytest

from npumake.cli.projects import selected
from npumake.errors import LockError, Place
from npumake.make.declarations import stages
from npumake.make.lock import FORMAT, Lock, LockedArtifact, lock_in
from workspaces import Workspace, add_report

STAGES = ("recipe", "calibrated", "quantized", "compiled", "comparison")
SHARED = ("original_float", "optimized_float", "samples", "statistics")
PLACES = ("ara240", "rdk-x5", "tflite", "@kl:ara240", "@kl:rdk-x5")
GIT = ("git", "-c", "user.name=me", "-c", "user.email=me@example.com")


def digest_of(*words: str) -> str:
    return sha256(" ".join(words).encode()).hexdigest()


def artifact(*words: str) -> LockedArtifact:
    return LockedArtifact(digest_of(*words), digest_of("key", *words), len(digest_of(*words)))


def lock_of(*places: str, version: str = "1") -> Lock:
    names = [*SHARED, *(f"{place}/{stage}" for place in places for stage in STAGES)]
    return Lock({name: artifact(name, version) for name in names})


def changed(lock: Lock, place: str) -> Lock:
    """Another artifact of every stage of a target."""
    names = [name for name in lock.artifacts if name.rpartition("/")[0] == place]
    return Lock({**lock.artifacts, **{name: artifact(name, "2") for name in names}})


def without(lock: Lock, place: str) -> Lock:
    kept = {n: each for n, each in lock.artifacts.items() if n.rpartition("/")[0] != place}
    return Lock(kept)


def plain(lock: Lock) -> Mapping[str, tuple[str, str, int]]:
    return {name: (a.digest, a.key, a.size) for name, a in lock.artifacts.items()}


def test_what_is_written_is_read() -> None:
    lock = lock_of(*PLACES)
    read = lock_in(lock.text.encode(), "npumake.lock")
    assert plain(read) == plain(lock)
    assert read.text == lock.text


def test_the_order_of_the_artifacts_does_not_count() -> None:
    lock = lock_of(*PLACES)
    assert Lock(dict(reversed(lock.artifacts.items()))).text == lock.text


def test_each_artifact_has_a_line_of_its_own_that_names_it() -> None:
    lock = lock_of(*PLACES)
    lines = [line for line in lock.text.split("\n") if line and not line.startswith("#")]
    assert len(lines) == len(set(lines)) == len(lock.artifacts)
    assert {line.split(" ")[3] for line in lines} == set(lock.artifacts)


def test_windows_line_ends_are_read() -> None:
    lock = lock_of("rdk-x5")
    assert plain(lock_in(lock.text.replace("\n", "\r\n").encode(), "x")) == plain(lock)


TEXT = lock_of("rdk-x5").text
FIRST = TEXT.split("\n")[5]  # of an artifact


@pytest.mark.parametrize(
    ("data", "what", "line"),
    [
        ("", "not a lock file", 0),
        ("{}", "not a lock file", 0),
        (TEXT.replace("lock 1", "lock 2"), "not a lock file", 0),
        (TEXT.replace(FIRST, FIRST[1:]), "not an artifact", 6),
        (TEXT.replace(FIRST, FIRST.upper()), "not an artifact", 6),
        (TEXT.replace(FIRST, FIRST.replace(" ", "\t")), "not an artifact", 6),
        (TEXT.replace(FIRST, f" {FIRST}"), "not an artifact", 6),
        (TEXT.replace(FIRST, f"<<<<<<< HEAD\n{FIRST}"), "a merge conflict", 6),
        (TEXT.replace(FIRST, f"=======\n{FIRST}"), "a merge conflict", 6),
        (f"<<<<<<< HEAD\n{TEXT}", "a merge conflict", 1),
        (TEXT + FIRST.replace(FIRST[:64], "0" * 64), "two artifacts of", TEXT.count("\n") + 1),
        ("\x00" * 64, "not a lock file", 0),
        (f"{FORMAT}\n\udcff", "not an artifact", 2),
    ],
)
def test_another_text_is_one_error_at_its_line(data: str, what: str, line: int) -> None:
    with pytest.raises(LockError, match=what) as raised:
        lock_in(data.encode("utf-8", "surrogateescape"), "npumake.lock")
    where = raised.value.where
    assert (where.line if isinstance(where, Place) else 0) == line
    assert "npumake lock" in raised.value.hint


def test_an_artifact_that_joins_all_targets_is_not_locked(fresh: Workspace) -> None:
    add_report(fresh)
    (build,) = selected(fresh.root, [])
    joining = {node.stage for node in build.plan.nodes if node.joins}
    assert joining == {name for name, stage in stages(build.memory).items() if stage.joins}
    assert Lock({}).allows(next(node for node in build.plan.nodes if node.joins), "0" * 64)


# -- git -------------------------------------------------------------------------------------


def git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GIT, *arguments], cwd=root, capture_output=True, text=True, check=False)


def commit(root: Path, locks: Mapping[str, Lock]) -> None:
    for name, lock in locks.items():
        file = root / name / "npumake.lock"
        file.parent.mkdir(exist_ok=True)
        file.write_text(lock.text)
    git(root, "add", "-A")
    assert git(root, "commit", "-qm", "x").returncode == 0


def merged(
    root: Path, base: Mapping[str, Lock], ours: Mapping[str, Lock], theirs: Mapping[str, Lock]
) -> bool:
    """Whether git merges two branches of `base`."""
    assert git(root, "init", "-q", "-b", "main", ".").returncode == 0
    commit(root, base)
    git(root, "checkout", "-qb", "theirs")
    commit(root, theirs)
    git(root, "checkout", "-q", "main")
    commit(root, ours)
    return git(root, "merge", "-q", "-m", "both", "theirs").returncode == 0


def read(root: Path, name: str) -> Lock:
    return lock_in((root / name / "npumake.lock").read_bytes(), name)


def test_branches_that_change_two_targets_merge(tmp_path: Path) -> None:
    base = lock_of(*PLACES)
    pairs = {f"{a}{b}".replace(":", ""): (a, b) for a, b in combinations(PLACES, 2)}
    ours = {name: changed(base, a) for name, (a, _) in pairs.items()}
    theirs = {name: changed(base, b) for name, (_, b) in pairs.items()}
    assert merged(tmp_path, dict.fromkeys(pairs, base), ours, theirs)
    for name, (a, b) in pairs.items():
        assert plain(read(tmp_path, name)) == plain(changed(changed(base, a), b))


def test_one_branch_adds_or_removes_a_target_where_the_other_changes_one(tmp_path: Path) -> None:
    whole = lock_of(*PLACES)
    cases = {f"{a}{b}".replace(":", ""): (a, b) for a in PLACES for b in PLACES if a != b}
    bases = {f"add{n}": without(whole, a) for n, (a, _) in cases.items()}
    ours = {f"add{n}": whole for n in cases}
    theirs = {f"add{n}": changed(without(whole, a), b) for n, (a, b) in cases.items()}
    expected = {f"add{n}": changed(whole, b) for n, (_, b) in cases.items()}
    bases |= {f"remove{n}": whole for n in cases}
    ours |= {f"remove{n}": without(whole, a) for n, (a, _) in cases.items()}
    theirs |= {f"remove{n}": changed(whole, b) for n, (_, b) in cases.items()}
    expected |= {f"remove{n}": changed(without(whole, a), b) for n, (a, b) in cases.items()}
    assert merged(tmp_path, bases, ours, theirs)
    for name, lock in expected.items():
        assert plain(read(tmp_path, name)) == plain(lock)


def test_branches_that_change_two_projects_merge(tmp_path: Path) -> None:
    base = lock_of("rdk-x5")
    ours, theirs = {"a": changed(base, "rdk-x5")}, {"b": changed(base, "rdk-x5")}
    assert merged(tmp_path, {"a": base, "b": base}, ours, theirs)
    assert plain(read(tmp_path, "a")) == plain(read(tmp_path, "b")) == plain(ours["a"])


def test_branches_that_change_one_target_conflict(tmp_path: Path) -> None:
    base = lock_of("rdk-x5")
    both = changed(base, "rdk-x5")
    other = Lock({name: artifact(name, "3") for name in both.artifacts})
    assert not merged(tmp_path, {"a": base}, {"a": both}, {"a": other})
    with pytest.raises(LockError, match="a merge conflict"):
        read(tmp_path, "a")


@pytest.mark.parametrize(
    ("ours", "theirs", "merges"), [("rdk-x5", "tflite", True), ("sl1680", "sl1680", False)]
)
def test_a_union_merge_adds_neighbors_and_is_refused_where_it_is_wrong(
    tmp_path: Path, ours: str, theirs: str, merges: bool
) -> None:
    base = lock_of("ara240")
    (tmp_path / ".gitattributes").write_text("npumake.lock merge=union\n")
    added = [lock_of("ara240"), lock_of("ara240")]
    for lock, place, version in zip(added, (ours, theirs), "12", strict=True):
        names = [f"{place}/{stage}" for stage in STAGES]
        lock.artifacts.update({name: artifact(name, version) for name in names})
    assert merged(tmp_path, {"a": base}, {"a": added[0]}, {"a": added[1]})
    if merges:
        both = {**added[0].artifacts, **added[1].artifacts}
        assert plain(read(tmp_path, "a")) == plain(Lock(both))
    else:
        with pytest.raises(LockError, match="two artifacts"):
            read(tmp_path, "a")
