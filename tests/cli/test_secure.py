"""`npumake secure`, and the verbs that open what it makes."""

import json
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from PIL import Image

import certificates
from bundle.test_revocation import revoking
from cli.detectors import compiled_detector
from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.cli.main import main
from npumake.engine.lower import lowered
from npumake.graph import parse_text
from workspaces import lay_out

QUANTIZED = """agraph (float[1,2] x) => (float[1,2] y) <float s = {0.25}, int8 o = {0}> {
    q = QuantizeLinear(x, s, o)  y = DequantizeLinear(q, s, o) }"""
GRID = Tensor((3,), "int8", 1.0)
STEP = Instruction("constant", "c", (), ("y",), {"values": np.array([3, -5, 9], np.int8)})


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A model and what secures it, in the current directory."""
    Bundle("any", Program((), ("y",), {"y": GRID}, (STEP,)), {}).save(tmp_path / "m.hybrid")
    certificates.written(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_security_file_and_the_four_options_make_the_same_file(folder, capsys):
    assert main(["secure", "m.hybrid", "--security", "security.yaml", "-o", "a.hybrid"]) == 0
    said = capsys.readouterr()
    assert said.out == "encrypted and signed by CN=Model signer: a.hybrid\n"
    names = ("encryption_key", "signature_key", "model_certificate", "vendor_certificate")
    given = [text for x in names for text in (f"--{x.replace('_', '-')}", f"{x}.pem")]
    assert main(["secure", "m.hybrid", *given, "-o", "b.hybrid"]) == 0
    assert (folder / "a.hybrid").read_bytes() == (folder / "b.hybrid").read_bytes()
    assert main(["secure", "m.hybrid", *given[2:], "-o", "c.hybrid"]) == 0
    assert "signed by CN=Model signer: c.hybrid" in capsys.readouterr().out


def test_show_tells_who_signed_and_whether_the_vendor_lets_him(folder, capsys):
    main(["secure", "m.hybrid", "--security", "security.yaml", "-o", "a.hybrid"])
    assert main(["show", "a.hybrid"]) == 0
    said = capsys.readouterr().out
    assert "signed by: CN=Model signer\nissued by: CN=Vendor\nchecked: no; --vendor-cert" in said
    assert main(["show", "a.hybrid", "--vendor-certificate", "vendor_certificate.pem"]) == 0
    assert "checked: yes, against vendor_certificate.pem" in capsys.readouterr().out
    assert main(["show", "a.hybrid", "--vendor-certificate", "model_certificate.pem"]) == 3
    assert "whose certificate `CN=Model signer` did not issue" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["-o", "x"], 2, "missing --signature-key, --model-certificate, --vendor-certificate"),
        (["--security", "no.yaml", "-o", "x"], 2, "no.yaml"),
        (["--security", "security.yaml", "--signature-key", "a", "-o", "x"], 2, "keep one"),
        (["--security", "m.hybrid", "-o", "x"], 2, "m.hybrid"),
    ],
)
def test_what_cannot_be_secured_is_one_error(folder, capsys, given, code, words):
    assert main(["secure", "m.hybrid", *given]) == code
    said = capsys.readouterr().err
    assert said.count("error: ") == 1
    assert words in said
    assert not (folder / "x").exists()


def test_run_opens_it_with_both_keys_and_not_with_one(folder, capsys):
    main(["secure", "m.hybrid", "--security", "security.yaml", "-o", "a.hybrid"])
    vendor = ["--vendor-certificate", "vendor_certificate.pem"]
    key = ["--encryption-key", "encryption_key.pem"]
    assert main(["bench", "a.hybrid", "--frame_count", "1", *vendor, *key]) == 0
    for given, words in ((vendor, "no encryption key"), (key, "too"), ([], "opens with its keys")):
        assert main(["bench", "a.hybrid", "--frame_count", "1", *given]) in (2, 3)
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["bench", "a.hybrid", "--frame_count", "1"],
        ["info", "a.hybrid"],
        ["perf", "a.hybrid"],
        ["verify", "-q", "m.onnx", "-b", "a.hybrid"],
    ],
    ids=lambda command: command[0],
)
def test_the_verbs_that_open_it_take_its_keys(folder, capsys, command):
    graph = parse_text(QUANTIZED)
    graph.save(folder / "m.onnx")
    Bundle("rdk-x5", lowered(graph, "half_even"), {}).save(folder / "m.hybrid")
    main(["secure", "m.hybrid", "--security", "security.yaml", "-o", "a.hybrid"])
    opening = ["--vendor-certificate", "vendor_certificate.pem"]
    assert main([*command, *opening, "--encryption-key", "encryption_key.pem"]) == 0
    assert main([*command, *opening]) == 3
    assert "no encryption key is given" in capsys.readouterr().err
    assert main(command) == 3
    assert "a secure model: it opens with its keys" in capsys.readouterr().err


def test_run_gives_the_boxes_and_classes_of_a_secure_detector(folder, capsys):
    compiled_detector().save(folder / "m.hybrid")
    Image.fromarray(np.zeros((32, 64, 3), np.uint8)).save("dark.png")
    main(["secure", "m.hybrid", "--security", "security.yaml", "-o", "a.hybrid"])
    opening = ["--vendor-certificate", "vendor_certificate.pem"]
    opening += ["--encryption-key", "encryption_key.pem"]
    capsys.readouterr()
    fed = ["--input", "dark.png", "--draw", "drawn.png", "--json"]
    assert main(["run", "a.hybrid", *fed, *opening]) == 0
    (box,) = json.loads(capsys.readouterr().out)
    assert (box["label"], box["box"]) == ("star", [16, 12, 32, 8])
    assert np.asarray(Image.open("drawn.png")).any()


def test_a_revocation_list_is_honoured_and_needs_the_vendor(folder, capsys):
    main(["secure", "m.hybrid", "--security", "security.yaml", "-o", "a.hybrid"])
    revoked = revoking(certificates.model().certificate.serial_number)
    (folder / "v.crl").write_bytes(revoked.public_bytes(serialization.Encoding.PEM))
    vendor = ["--vendor-certificate", "vendor_certificate.pem"]
    for verb in (["info"], ["show"], ["bench", "--frame_count", "1"]):
        command = [verb[0], "a.hybrid", *verb[1:], *vendor, "--revocation-list", "v.crl"]
        assert main(command) == 3
        assert "the certificate of its signer was revoked on" in capsys.readouterr().err
    assert main(["info", "a.hybrid", "--revocation-list", "v.crl"]) == 2
    assert "give --vendor-certificate, too" in capsys.readouterr().err


def test_a_name_in_a_secure_file_is_refused(folder, capsys):
    main(["secure", "m.hybrid", "--security", "security.yaml", "-o", "a.hybrid"])
    given = ["--vendor-certificate", "vendor_certificate.pem", "-m", "m"]
    assert main(["info", "a.hybrid", *given]) == 2
    assert "a secure model is not a packed one" in capsys.readouterr().err


@pytest.mark.slow
def test_a_build_carries_the_policies_that_show_tells_of_the_secure_file(tmp_path):
    workspace = lay_out(tmp_path)
    file = workspace.project / "project.yaml"
    own = "\nsecurity: {inputs: {image: secure}}\ntargets: [sl1680]\n"
    file.write_text(file.read_text().partition("\ntargets:")[0] + own)
    workspace.npumake("build", "digits")
    certificates.written(tmp_path)
    out = str(workspace.project / "out/digits.sl1680.hybrid")
    workspace.npumake("secure", out, "--security", "security.yaml", "-o", "m.hybrid")
    shown = [line.split() for line in workspace.npumake("show", "m.hybrid").stdout.splitlines()]
    assert ["inputs", "image", "secure"] in shown
