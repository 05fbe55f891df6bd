"""No mutant of anything that a build reads leaves a stale byte, or makes what need not be made.

Each seed is a chain of mutants in one workspace: `why` names what was changed, the build gives the
bytes of a clean one, and makes only what reads the change or other bytes than before. Then it is
undone, and nothing has to be made. Each mutant is one of a project whose seal holds. A handful in
CI; all of them with NPUMAKE_EVERY=1.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from chaos.damage import DAMAGE
from chaos.laboratory import KINDS, Laboratory, digests, lay_out_mice, nodes
from chaos.mutations import CHANGES, OF_CUSTOM, Mutant
from malformed.runner import Server
from npumake.stages import STAGES
from workspaces import few

pytestmark = pytest.mark.slow
TABLE = {**CHANGES, **DAMAGE, **OF_CUSTOM}
EVERY = bool(os.environ.get("NPUMAKE_EVERY"))
SEEDS, IN_CI = 10, 4
CHANGED = f"({'|'.join(STAGES)}): changed"
CASES = [(kind, seed) for seed in range(SEEDS) for kind in KINDS]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Server, Server]:
    cache = tmp_path_factory.mktemp("cache")
    return Server(cache), Server(cache, "libraries")


def deck(kind: str, seed: int) -> list[str]:
    """Every mutation that suits, in any order; in CI some of them."""
    suited = [name for name in TABLE if name not in OF_CUSTOM or kind == "custom"]
    dealt = random.Random(f"{kind}{seed}").sample(suited, len(suited))
    return dealt if EVERY else dealt[:IN_CI]


@pytest.mark.parametrize(("kind", "seed"), few(CASES, lambda case: case[1] == 0))
def test_no_mutant_is_stale_or_made_in_vain(
    kind: str, seed: int, servers: tuple[Server, Server], tmp_path: Path
) -> None:
    workspace = lay_out_mice(tmp_path / "w", kind)
    lab = Laboratory(workspace, *servers, tmp_path / "site")
    assert lab.run("build").code == 0
    expected = digests(workspace)
    assert (0, expected) == lab.clean(tmp_path / "clean")
    lab.seal()
    for number, name in enumerate(deck(kind, seed)):
        rng = random.Random(f"{kind}{seed}{number}")
        lab.keep_the_past()
        mutant = TABLE[name](lab, rng)
        said = f"{name}: {mutant.what}"
        names_the_leaf(lab, mutant, said)
        before = inputs_of(lab, expected)
        clean = (0, expected) if mutant.same else lab.clean(tmp_path / "clean")
        builds(lab, mutant, said, clean, before)
        mutant.undo()
        if mutant.reversible:
            if clean[0] == 0:
                names_the_leaf(lab, mutant, f"{said}, undone")
            back = mutant._replace(touched=frozenset(), exact=mutant.same)
            builds(lab, back, f"{said}, undone", (0, expected), before={})
        shutil.rmtree(lab.site, ignore_errors=True)
    assert "every node is current" in lab.run("why").output


def names_the_leaf(lab: Laboratory, mutant: Mutant, said: str) -> None:
    """Each reason is the leaf or a stage that it has changed, and one is the leaf."""
    output = lab.run("why").output
    reasons = [line.strip() for line in output.splitlines() if line.startswith("  ")]
    leaves = [reason for reason in reasons if not re.fullmatch(CHANGED, reason)]
    assert bool(leaves) == bool(reasons) == bool(mutant.leaf), f"{said}: {output}"
    for leaf in leaves:
        assert re.search(mutant.leaf, leaf), f"{said}: {output}"


Bytes = Mapping[str, str]


def inputs_of(lab: Laboratory, found: Bytes) -> dict[str, list[str | None]]:
    """What each node is made from, by the bytes that are there."""
    plan = {node["name"]: node for node in lab.plan()}
    files = {name: node["path"].removeprefix("out/") for name, node in plan.items()}
    return {
        name: [found.get(files[made]) for made in node["inputs"].values()]
        for name, node in plan.items()
    }


def builds(
    lab: Laboratory,
    mutant: Mutant,
    said: str,
    clean: tuple[int, Bytes],
    before: Mapping[str, list[str | None]],
) -> None:
    """The bytes of a clean build, made by no node but those that had to."""
    outcome = lab.run("build")
    told = f"{said}: {outcome.output}"
    assert outcome.code == clean[0], told
    assert "Traceback" not in outcome.output or clean[0] == 1, told
    if outcome.code:
        return
    assert digests(lab.workspace) == clean[1], told
    after = inputs_of(lab, clean[1])
    made = {f"{lab.workspace.name}:{node}" for node in nodes(outcome.output, "made")}
    owed = {name for name in before if before[name] != after.get(name)}
    assert made <= mutant.touched | owed, told
    assert not mutant.exact or made == mutant.touched, told
    lab.seal()  # the next mutant is one of sealed projects
