"""A bug of ours looks like one: its traceback, whose it is, exit 1. Never told as the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from forks import run_python, user_environment
from npumake.cli.show import BUG
from workspaces import Workspace, lay_out

# Errors that a stranger's program was once taken for, planted where no user reaches.
KINDS = ("AttributeError", "IndexError", "KeyError", "OverflowError", "TypeError", "ValueError")
PLANTED = """
import sys
from npumake.engine import reference, translate
from npumake.perf import layers

def broken(*read):
    raise {kind}("planted")

{place}
from npumake.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""
KERNEL = "reference.KERNELS['conv'] = broken; translate.TRANSLATIONS.clear()"
TRANSLATION = "translate.TRANSLATIONS['conv'] = broken"
ESTIMATE = "layers.MACS = dict.fromkeys(layers.MACS, broken)"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = lay_out(tmp_path_factory.mktemp("bugs") / "w")
    workspace.npumake("build", "digits")
    return workspace


def run_with(place: str, kind: str, here: Path, *command: str) -> tuple[int, str]:
    code = PLANTED.format(place=place, kind=kind)
    environment = {**user_environment(), "NPUMAKE_CACHE": str(here / "empty")}
    run = run_python("-c", code, *command, folder=here, environment=environment)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "verb"),
    [
        (KERNEL, "bench out/digits.rdk-x5.hybrid --frame_count 1"),
        (TRANSLATION, "bench out/digits.rdk-x5.hybrid --frame_count 1"),
        (KERNEL, "build"),
        (ESTIMATE, "perf out/digits.rdk-x5.hybrid"),
    ],
)
def test_a_bug_of_ours_looks_like_one(place: str, verb: str, built: Workspace) -> None:
    if verb.startswith("build"):
        for file in built.project.glob("out/**/*comparison*"):
            file.unlink()
    for kind in KINDS if not verb.startswith("build") else KINDS[:1]:
        code, output = run_with(place, kind, built.project, *verb.split())
        assert code == 1, output
        assert f"{kind}: " in output
        assert "planted" in output
        assert "Traceback" in output
        assert BUG in output
        assert not [line for line in output.splitlines() if line.startswith("error: ")]
