"""`npumake lock`, `--frozen`, `npumake ci` and `npumake validate` as they are typed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from npumake.make.lock import lock_in
from workspaces import REPO, Workspace, copied, lay_out

FILES = ("--junit", "r/j.xml", "--sarif", "r/s.sarif", "--summary", "r/s.md")


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def locked_once(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A repository whose main branch is built and locked."""
    workspace = copied(built_once, tmp_path_factory.mktemp("locked") / "w")
    (workspace.root / ".gitignore").write_text("cache/\nout/\n.doit.db*\nr/\n")
    workspace.npumake("lock")
    git(workspace.root, "init", "-q", "-b", "main", ".")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-q", "-m", "base")
    return workspace


@pytest.fixture
def locked(locked_once: Workspace, tmp_path: Path) -> Workspace:
    return copied(locked_once, tmp_path / "w")


def clean(workspace: Workspace) -> None:
    """Its cache keeps what it remembers of our own code, and no artifact."""
    for folder in ("blobs", "records"):
        shutil.rmtree(workspace.root / "cache" / folder)


def edit(workspace: Workspace, before: str, after: str) -> None:
    file = workspace.project / "project.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def other_targets(workspace: Workspace) -> None:
    """Another calibration of one target; the other is as it was."""
    edit(workspace, "  - ara240", "  - ara240: {calibration: {method: mse}}")


# -- lock --------------------------------------------------------------------------------------


def test_the_lock_has_every_artifact_with_its_digest_and_size(locked: Workspace) -> None:
    lock = lock_in((locked.project / "npumake.lock").read_bytes(), "npumake.lock")
    digests = {
        Path(row["artifact"]).name: row["digest"]
        for row in json.loads(locked.npumake("list", "--json").stdout)
    }
    assert {each.digest for each in lock.artifacts.values()} == set(digests.values())
    sizes = {each.digest: each.size for each in lock.artifacts.values()}
    for name, digest in digests.items():
        assert sizes[digest] == (locked.project / "out" / name).stat().st_size


@pytest.mark.slow
def test_the_lock_is_the_same_wherever_the_project_is_built(locked, tmp_path) -> None:
    other = lay_out(tmp_path / "other")
    other.npumake("lock", "-n", "2")
    written = (other.project / "npumake.lock").read_bytes()
    assert written == (locked.project / "npumake.lock").read_bytes()


def test_a_lock_tells_what_changed_and_an_equal_one_is_left_alone(locked: Workspace) -> None:
    file = locked.project / "npumake.lock"
    before = file.stat().st_mtime_ns
    run = locked.npumake("lock", "digits")
    assert run.stdout.splitlines()[-1] == "projects/digits/npumake.lock: 16 artifacts, none changed"
    assert file.stat().st_mtime_ns == before
    edit(locked, "  - ara240", "  #")
    last = locked.npumake("lock").stdout.splitlines()[-1]
    assert last == "projects/digits/npumake.lock: 10 artifacts, 6 removed"


@pytest.mark.parametrize("text", ["<<<<<<< ours\n", "", "\0"])
def test_a_lock_file_that_cannot_be_read_is_written_anew(locked: Workspace, text: str) -> None:
    file = locked.project / "npumake.lock"
    whole = file.read_text()
    file.write_text(text)
    run = locked.npumake("build", "--frozen", check=False)
    assert run.returncode == 7
    assert "npumake lock" in run.stdout
    locked.npumake("lock")
    assert file.read_text() == whole


@pytest.mark.slow
def test_a_build_that_fails_writes_no_lock(locked: Workspace) -> None:
    before = (locked.project / "npumake.lock").read_bytes()
    (locked.project / "gates.yaml").write_text("- {cosine: 0.9999999}\n")
    assert locked.npumake("lock", check=False).returncode == 6
    assert (locked.project / "npumake.lock").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["lock", "ci"])
@pytest.mark.parametrize("name", ["digits:rdk-x5/calibrated", "digits@kl", "nothing"])
def test_only_whole_projects_are_locked_and_tested(locked, verb, name) -> None:
    run = locked.npumake(verb, name, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("error: ")


# -- frozen ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_frozen_build_of_a_clean_machine_makes_what_is_locked(locked: Workspace) -> None:
    clean(locked)
    shutil.rmtree(locked.project / "out")
    assert locked.npumake("build", "--frozen").stdout.splitlines()[-1].startswith("16 made")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# Handwritten digits", "# Digits by hand"),
        ("path: model.onnx", "path: ./model.onnx"),
        ("  - rdk-x5 # symmetric int8 activations\n  - ara240", "  - ara240\n  - rdk-x5 "),
    ],
)
def test_what_makes_the_same_artifacts_passes(locked, before, after) -> None:
    edit(locked, before, after)
    assert locked.npumake("build", "--frozen").returncode == 0


def test_inputs_of_other_names_that_make_the_same_artifacts_pass(locked: Workspace) -> None:
    """A key differs, its artifact does not."""
    (locked.project / "model.onnx").rename(locked.project / "other.onnx")
    edit(locked, "path: model.onnx", "path: other.onnx")
    run = locked.npumake("build", "--frozen", check=False)
    assert run.returncode == (0 if "failed" not in run.stdout else 7)


def test_another_artifact_fails_before_it_is_published_and_says_why(locked: Workspace) -> None:
    edit(locked, "method: max", "method: mse")
    before = locked.digests()
    run = locked.npumake("build", "--frozen", check=False)
    assert run.returncode == 7
    assert "`digits:rdk-x5/recipe` differs from the lock file" in run.stdout
    assert "calibration.method: max → mse   (project.yaml:17)" in run.stdout
    assert re.search(r"--> projects/digits/npumake\.lock:\d+:1", run.stdout)
    assert {name: locked.digests()[name] for name in before} == before


def test_without_a_record_of_the_locked_key_its_parts_are_named(locked: Workspace) -> None:
    edit(locked, "method: max", "method: mse")
    clean(locked)
    run = locked.npumake("build", "--frozen", check=False)
    assert run.returncode == 7
    lines = [x for x in run.stdout.splitlines() if "the cache lacks the old key" in x]
    assert lines  # a target that fails does not stop the other one
    for line in lines:
        assert re.search(r"YAML \(.*calibration", line)
        assert "numpy " in line


def test_an_artifact_that_is_current_or_stored_fails_like_one_that_is_made(locked) -> None:
    edit(locked, "method: max", "method: mse")
    node = "digits:rdk-x5/recipe"
    locked.npumake("build", node)
    assert locked.npumake("build", node, "--frozen", check=False).returncode == 7
    shutil.rmtree(locked.project / "out")
    assert locked.npumake("build", node, "--frozen", check=False).returncode == 7


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("  - ara240", "  - ara240\n  - tflite", "lacks `tflite/calibrated` and 5 more"),
        ("  - ara240", "  #", "has `ara240/calibrated` and 5 more"),
    ],
)
def test_nodes_more_or_less_fail_before_anything_is_built(locked, before, after, what) -> None:
    edit(locked, before, after)
    shutil.rmtree(locked.project / "out")
    run = locked.npumake("build", "--frozen", check=False)
    assert run.returncode == 7
    assert what in run.stdout
    assert not list((locked.project / "out").glob("*.onnx"))


def test_without_a_lock_file_a_frozen_build_fails(locked: Workspace) -> None:
    (locked.project / "npumake.lock").unlink()
    for verb in ("build", "ci"):
        run = locked.npumake(verb, "--frozen", check=False)
        assert run.returncode == 7
        assert "no lock file" in run.stdout


def test_a_machine_that_computes_other_bytes_is_named_as_the_cause(locked: Workspace) -> None:
    file = locked.project / "npumake.lock"
    (line,) = (x for x in file.read_text().splitlines() if x.endswith(" ara240/recipe"))
    file.write_text(file.read_text().replace(line, f"{'0' * 64}{line[64:]}"))
    run = locked.npumake("build", "--frozen", check=False)
    assert run.returncode == 7
    assert "this machine computes other bytes" in run.stdout


@pytest.mark.slow
def test_targets_of_two_branches_merge_into_what_a_build_makes(locked: Workspace) -> None:
    root = locked.root
    for branch, target in (("one", "rdk-x5"), ("two", "ara240")):
        git(root, "checkout", "-q", "-b", branch, "main")
        edit(locked, f"  - {target}", f"  - {target}: {{calibration: {{method: mse}}}}")
        locked.npumake("lock")
        git(root, "commit", "-q", "-a", "-m", branch)
    yaml_file = (locked.project / "project.yaml").read_text()
    git(root, "checkout", "-q", "one")
    both = yaml_file.replace("  - rdk-x5", "  - rdk-x5: {calibration: {method: mse}}")
    # Neighboring lines of the YAML conflict; those of the lock must not.
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "-q", "two")
    assert git(root, "diff", "--name-only", "--diff-filter=U") == "projects/digits/project.yaml\n"
    (locked.project / "project.yaml").write_text(both)
    assert locked.npumake("build", "--frozen").returncode == 0


# -- ci ----------------------------------------------------------------------------------------


def summary(workspace: Workspace) -> str:
    return (workspace.root / "r/s.md").read_text()


def cells(workspace: Workspace) -> dict[str, list[str]]:
    """The cells of the summary's table by target."""
    rows = [line.strip("| ").split(" | ") for line in summary(workspace).splitlines()]
    return {row[1].strip("`"): row[2:] for row in rows if len(row) == 8 and "`" in row[1]}


def test_a_change_of_nothing_builds_nothing(locked: Workspace) -> None:
    run = locked.npumake("ci", "--since", "main", "--frozen", *FILES)
    assert run.stdout == "nothing to build\n"
    assert summary(locked).startswith("## npumake: nothing to build")
    assert len(ElementTree.parse(locked.root / "r/j.xml").getroot()) == 0


def test_a_change_of_one_target_is_compared_with_the_base(locked: Workspace) -> None:
    git(locked.root, "checkout", "-q", "-b", "topic")
    other_targets(locked)
    git(locked.root, "commit", "-q", "-a", "-m", "topic")
    run = locked.npumake("ci", "--since", "main", *FILES)
    assert run.stdout.startswith("touched   digits: projects/digits/project.yaml, ")
    table = cells(locked)
    assert [cell.endswith("(=)") for cell in table["rdk-x5"]] == [False, *[True] * 5]
    assert all(cell == "--" or re.search(r"\(.+\)$", cell) for cell in table["ara240"])
    assert not table["ara240"][1].endswith("(=)")
    statuses = [case.findtext("system-out") for case in cases(locked)]
    hits, misses = statuses.count("current") + statuses.count("recalled"), statuses.count("made")
    assert re.search(rf"Cache: {hits} hits, {misses} misses, \d+\.\d s saved", summary(locked))
    assert f"Compared with {git(locked.root, 'rev-parse', 'main')[:12]}" in summary(locked)


def cases(workspace: Workspace) -> list[ElementTree.Element]:
    return list(ElementTree.parse(workspace.root / "r/j.xml").getroot().iter("testcase"))


@pytest.mark.slow
def test_accuracy_is_that_of_the_evaluation(scored: Workspace) -> None:
    scored.npumake("ci", *FILES)
    assert {cell[0].split(" ")[1] for cell in cells(scored).values()} == {"`top1`"}
    assert "Compared" not in summary(scored)


@pytest.mark.slow
def test_without_the_base_in_the_cache_sizes_are_compared(locked: Workspace) -> None:
    other_targets(locked)
    clean(locked)
    locked.npumake("ci", "--since", "main", *FILES)
    table = cells(locked)
    # What is as it was needs no cache.
    assert [cell.endswith("(=)") for cell in table["rdk-x5"]] == [False, *[True] * 5]
    compared = [cell.endswith(")") for cell in table["ara240"]]
    assert compared == [False, False, True, False, False, False]
    assert "The cache lacks the base's artifacts of 1 row" in summary(locked)


@pytest.mark.slow
def test_the_base_is_rebuilt_when_that_is_asked_for(locked: Workspace) -> None:
    other_targets(locked)
    clean(locked)
    before = git(locked.root, "status", "--short", "--ignored")
    locked.npumake("ci", "--since", "main", "--rebuild-base", *FILES)
    assert all(cell == "--" or cell.endswith(")") for row in cells(locked).values() for cell in row)
    assert "lacks" not in summary(locked)
    assert len(git(locked.root, "worktree", "list").splitlines()) == 1
    after = git(locked.root, "status", "--short", "--ignored")
    assert {*after.splitlines()} - {*before.splitlines()} == {"!! r/"}


@pytest.mark.slow
def test_the_base_comes_from_a_remote_cache_by_its_locked_keys(
    locked: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "share").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NPUMAKE_CACHE_REMOTE", f"file://{tmp_path}/share")
    locked.npumake("cache", "keygen")
    locked.npumake("cache", "push", "--all")
    other_targets(locked)
    clean(locked)
    shutil.rmtree(locked.project / "out")
    locked.npumake("ci", "--since", "main", *FILES)
    assert all(cell == "--" or cell.endswith(")") for row in cells(locked).values() for cell in row)
    assert "lacks" not in summary(locked)
    assert re.search(r"Cache: 10 hits, 6 misses", summary(locked))


@pytest.mark.slow
def test_a_base_without_a_lock_file_is_said(locked: Workspace) -> None:
    git(locked.root, "rm", "-q", "projects/digits/npumake.lock")
    git(locked.root, "commit", "-q", "-m", "without")
    edit(locked, "# Handwritten", "# Hand-written")
    locked.npumake("ci", "--since", "HEAD", *FILES)
    assert "The base has no valid lock file of `digits`: nothing is compared" in summary(locked)


@pytest.mark.slow
def test_new_and_removed_targets_are_marked(locked: Workspace) -> None:
    edit(locked, "  - ara240", "  - tflite")
    locked.npumake("ci", "--since", "main", *FILES)
    assert "| `digits` new | `tflite` |" in summary(locked)
    assert "| `digits` removed | `ara240` |" in summary(locked)


@pytest.mark.slow
def test_every_failure_is_shown_and_what_is_behind_is_skipped(locked: Workspace) -> None:
    edit(locked, "method: max", "method: mse")
    broken = locked.root / "projects/broken"
    broken.mkdir()
    (broken / "project.yaml").write_text("model: {path: model.onnx}\nquantised: {}\n")
    run = locked.npumake("ci", "--since", "main", "--frozen", *FILES, check=False)
    assert run.returncode == 2  # of the first error
    assert "this is a bug" not in run.stdout
    kinds = {child.tag for case in cases(locked) for child in case}
    assert kinds == {"error", "failure", "skipped", "system-out"}
    (entry, *others) = json.loads((locked.root / "r/s.sarif").read_text())["runs"][0]["results"]
    physical = entry["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "projects/broken/project.yaml"
    assert physical["region"] == {"startLine": 2, "startColumn": 1}
    assert [each["ruleId"] for each in others if each["level"] == "error"] == ["LockError"] * 2
    assert "calibration.method: max → mse" in summary(locked)


@pytest.mark.slow
def test_a_gate_that_fails_has_its_exit_code_and_the_figures(locked: Workspace) -> None:
    (locked.project / "gates.yaml").write_text("- {cosine: 0.9999999}\n")
    run = locked.npumake("ci", *FILES, check=False)
    assert run.returncode == 6
    failures = [failure for case in cases(locked) for failure in case.iter("failure")]
    assert {failure.get("type") for failure in failures} == {"GateError"}
    assert all(row[2].endswith("B") for row in cells(locked).values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("since", "what"), [("nowhere", "no commit `nowhere`"), ("--junit=x", "no commit")]
)
def test_an_unknown_base_is_one_error(locked: Workspace, since: str, what: str) -> None:
    run = locked.npumake("ci", f"--since={since}", check=False)
    assert run.returncode == 2
    assert run.stderr.startswith(f"error: {what}")


def test_outside_a_repository_since_is_one_error(built: Workspace) -> None:
    run = built.npumake("ci", "--since", "main", check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("error: not in a git repository")


@pytest.mark.parametrize("since", ["", "0" * 40])
def test_without_a_base_everything_is_built(locked: Workspace, since: str) -> None:
    run = locked.npumake("ci", "--since", since, *FILES)
    assert run.stdout.splitlines()[-1].startswith("16 current")


def test_two_runs_write_equal_files_but_for_seconds(locked: Workspace) -> None:
    locked.npumake("ci", *FILES)
    first = {name: (locked.root / name).read_text() for name in FILES[1::2]}
    locked.npumake("ci", *FILES)
    assert {name: (locked.root / name).read_text() for name in FILES[1::2]} == first


# -- validate ------------------------------------------------------------------------------------


def test_a_valid_project_is_said_to_be_and_nothing_is_built(locked: Workspace) -> None:
    before = locked.digests()
    edit(locked, "method: max", "method: mse")
    assert locked.npumake("validate").stdout == "valid     digits\n"
    assert locked.digests() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "code", "what"),
    [
        (lambda w: edit(w, "model:", "modell:"), 2, "unknown key `modell`"),
        (lambda w: edit(w, "samples/*", "sample/*"), 2, "no file matches `sample/*.npy`"),
        (lambda w: (w.project / "model.onnx").unlink(), 2, "no file `model.onnx`"),
        (lambda w: edit(w, "ara240", "ara24"), 2, "unknown target `ara24`"),
        (lambda w: (w.project / "npumake.lock").write_text("<<<<<<< x\n"), 7, "a merge conflict"),
    ],
)
def test_an_invalid_project_is_one_error(locked: Workspace, act, code: int, what: str) -> None:
    act(locked)
    run = locked.npumake("validate", check=False)
    assert run.returncode == code
    assert run.stderr.startswith("error: ")
    assert what in run.stderr
    (entry,) = json.loads(locked.npumake("validate", "--json", check=False).stdout)
    assert (entry["valid"], entry["error"]["exit_code"]) == (False, code)


def test_the_hook_runs_what_its_entry_says(locked: Workspace) -> None:
    (hook,) = yaml.safe_load((REPO / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language", "files", "pass_filenames"} <= set(hook)
    program, *arguments = hook["entry"].split()
    assert program == "npumake"
    assert locked.npumake(*arguments).returncode == 0
    edit(locked, "model:", "modell:")
    assert locked.npumake(*arguments, check=False).returncode == 2
    for name in ("projects/digits/project.yaml", "gates.yml", "projects/digits/npumake.lock"):
        assert re.search(hook["files"], name)
