"""Where the project asks for it, the compiled file is what the vendor's own tool makes."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from cli.test_handover import COMMANDS, PRODUCTS, project, stand_in
from npumake.compilers.handover import Handover
from npumake.dialects.tools import TOOLS
from npumake.errors import CacheError
from npumake.targets.reader import read_target, target_names
from workspaces import Workspace, lay_out

__all__ = ("stand_in",)
PREFIXED = {target: f"model{Path(product).suffix}" for target, product in PRODUCTS.items()}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, tmp_path_factory, monkeypatch):
    """One store for all tests: what one has built the others recall."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "vendor tool"))


def asking(root: Path, target: str, more: str = "") -> Workspace:
    workspace = project(root / "w", target)
    with (workspace.project / "project.yaml").open("a") as file:
        file.write(f"compile: {{vendor_tool: true}}\n{more}")
    return workspace


def built(workspace: Workspace) -> tuple[int, str]:
    """The exit code, and all that is said."""
    done = workspace.npumake("build", check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("target", PRODUCTS)
def test_its_product_is_the_compiled_file_and_its_log_is_told(tmp_path, stand_in, target):
    stand_in(target, PREFIXED[target])
    workspace = asking(tmp_path, target)
    code, said = built(workspace)
    assert code == 0
    (made,) = workspace.project.glob(f"out/digits.{target}.*")
    assert made.suffix == Path(PRODUCTS[target]).suffix == read_target(target).tool.makes
    assert made.read_bytes() == b"made"
    assert f"{COMMANDS[target].split()[0]}: Start" in said


@pytest.mark.slow
def test_another_version_of_the_tool_makes_it_again_and_why_says_so(tmp_path, stand_in):
    stand_in("nash-e", "model.hbm", release="2.0")
    workspace = asking(tmp_path, "nash-e")
    assert "hb_compile: Start" in built(workspace)[1]
    code, said = built(workspace)
    assert (code, "hb_compile:" in said) == (0, False)
    stand_in("nash-e", "model.hbm", release="2.1")
    why = workspace.npumake("why", "digits:nash-e/compiled").stdout
    assert "hb_compile 2.0 (" in why
    assert "hb_compile 2.1 (" in why
    assert "hb_compile: Start" in built(workspace)[1]


@pytest.mark.slow
def test_the_report_of_what_the_tool_made_is_drawn_without_a_latency(tmp_path, stand_in):
    stand_in("nash-e", "model.hbm")
    workspace = asking(tmp_path, "nash-e")
    workspace.project.joinpath("report.yaml").write_text("{}\n")
    assert built(workspace)[0] == 0
    found = json.loads((workspace.project / "out/findings.nash-e.json").read_text())
    assert found["estimate"] is None
    assert (workspace.project / "out/report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("fails", "hb_compile fails with exit status 3:\nStart"),
        ("fails", "ERROR-OCCUR-DURING hbdk.compile: no license"),
        ("idle", "hb_compile succeeds and leaves no model.hbm"),
    ],
)
def test_its_failure_is_the_build_s(tmp_path, stand_in, monkeypatch, how, words):
    stand_in("nash-e", "model.hbm", release=how)
    monkeypatch.setenv("STAND_IN", how)
    workspace = asking(tmp_path, "nash-e")
    code, said = built(workspace)
    assert code == 4
    assert words in said
    assert "project.yaml:" in said
    assert not list(workspace.project.glob("out/digits.*"))


def test_asked_for_and_not_on_path_it_is_an_error_that_names_the_hand_over(tmp_path):
    workspace = asking(tmp_path, "nash-e")
    code, said = built(workspace)
    assert code == 4
    assert "`hb_compile` is not on PATH" in said
    assert "npumake handover" in said


def test_without_a_tool_to_call_the_key_is_refused_where_it_stands(tmp_path):
    code, said = built(asking(tmp_path, "tflite"))
    assert code == 2
    assert "there is no vendor tool for `tflite`" in said
    assert "project.yaml:" in said


def test_a_tool_on_path_that_nobody_asks_for_is_not_called(tmp_path, stand_in):
    stand_in("rdk-x5", "model.bin")
    workspace = project(tmp_path / "w", "rdk-x5")
    code, said = built(workspace)
    assert code == 0
    assert [path.name for path in workspace.project.glob("out/digits.*")] == [
        "digits.rdk-x5.hybrid"
    ]
    assert "hb_mapper:" not in said


@pytest.mark.slow
def test_a_project_in_the_vendor_s_words_hands_over_its_own_document(tmp_path, stand_in):
    stand_in("rdk-x5", "model.bin")
    workspace = lay_out(tmp_path / "w")
    (workspace.project / "project.yaml").write_text(
        "dialect: hb_mapper\nconfig: vendor/rdk_x5.yaml\ncompile: {vendor_tool: true}\n"
    )
    assert built(workspace)[0] == 0
    with zipfile.ZipFile(workspace.project / "out/handover.rdk-x5.zip") as archive:
        handed = archive.read("hb_mapper.yaml").decode()
    assert "output_model_file_prefix: model\n" in handed
    own = (workspace.project / "vendor/rdk_x5.yaml").read_text()
    assert "norm_type" in own
    assert "norm_type" in handed


@pytest.mark.slow
def test_what_runs_on_the_chip_alone_is_not_scored(tmp_path, stand_in):
    stand_in("nash-e", "model.hbm")
    more = "evaluation: {dataset: {files: val/*/*.npy}, artifacts: [float, compiled]}\n"
    workspace = asking(tmp_path, "nash-e", more)
    (workspace.project / "val/0").mkdir(parents=True)
    sample = next(workspace.project.glob("samples/*.npy"))
    (workspace.project / "val/0/a.npy").write_bytes(sample.read_bytes())
    code, said = built(workspace)
    assert code == 2
    assert "for nash-e does not run here" in said


def test_of_what_the_vendor_s_tool_made_no_latency_is_known(tmp_path, stand_in):
    stand_in("nash-e", "model.hbm")
    code, said = built(asking(tmp_path, "nash-e", "gates: [{max_latency_ms: 10}]\n"))
    assert code == 2
    assert "the latency on this target is unknown" in said


@pytest.mark.parametrize("name", [n for n in target_names() if read_target(n).tool])
def test_a_target_and_its_tool_agree_on_the_command_and_the_product(name):
    target, tool = read_target(name), TOOLS[read_target(name).vendor]
    assert target.tool is not None
    assert target.tool.command == tool.name
    assert target.tool.makes == Path(tool.product).suffix


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\\b", "a//b"])
def test_a_hand_over_that_leads_elsewhere_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "h.zip", "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(CacheError, match="not part of a hand-over"):
        Handover.load(tmp_path / "h.zip")


def test_what_is_no_zip_is_no_hand_over(tmp_path):
    (tmp_path / "h.zip").write_bytes(b"PK")
    with pytest.raises(CacheError, match="not a hand-over"):
        Handover.load(tmp_path / "h.zip")
