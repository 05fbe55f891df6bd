"""Provenance: statements and bills that their own validators accept, signed, verified, rebuilt."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from onnx import numpy_helper

from npumake import digest
from npumake.bundle.archive import Bundle
from npumake.cache.remote.dsse import pae
from npumake.cache.remote.envelope import key_text
from npumake.cache.remote.keys import generate
from npumake.cli.main import main
from npumake.errors import ProjectError
from npumake.make.statement import read_statement
from workspaces import Workspace, copied

Output = pytest.CaptureFixture[str]
BUNDLE = "digits.rdk-x5.hybrid"


@pytest.fixture
def here(built: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workspace:
    monkeypatch.chdir(built.root)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{tmp_path}/config")
    return built


@pytest.fixture
def attested(here: Workspace, capsys: Output) -> Workspace:
    main(["cache", "keygen"])
    assert main(["attest", "--sign"]) == 0
    capsys.readouterr()
    return here


def out(workspace: Workspace, name: str = BUNDLE) -> Path:
    return workspace.project / "out" / name


def document(workspace: Workspace, suffix: str) -> dict:  # type: ignore[type-arg]
    return json.loads(out(workspace, f"{BUNDLE}{suffix}").read_bytes())


def verified(workspace: Workspace, *options: str, file: Path | None = None) -> int:
    return main(["verify", f"{file or out(workspace)}", *options])


@pytest.fixture(scope="module")
def attested_once(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A statement."""
    folder = tmp_path_factory.mktemp("statement")
    built_once.npumake("attest", "-o", f"{folder}")
    return folder.joinpath(f"{BUNDLE}.intoto.json").read_bytes()


# -- what is written -------------------------------------------------------------------------


def test_the_statement_and_its_predicate_are_valid_by_their_own_library(attested) -> None:
    text = out(attested, f"{BUNDLE}.intoto.json").read_text()
    message = json_format.Parse(text, statement_pb2.Statement())
    Statement.copy_from_pb(message).validate()
    predicate = json_format.ParseDict(json.loads(text)["predicate"], Provenance())
    assert predicate.build_definition.build_type == "urn:npumake:build:v1"
    assert predicate.run_details.builder.id
    for each in (
        *predicate.build_definition.resolved_dependencies,
        *predicate.run_details.byproducts,
    ):
        assert each.name
        assert each.uri or each.digest["sha256"]


@pytest.mark.parametrize("name", [BUNDLE, "digits.ara240.hybrid"])
def test_the_bill_is_valid_by_the_strict_schema(attested: Workspace, name: str) -> None:
    text = out(attested, f"{name}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_the_bill_of_an_evaluated_build_is_valid_and_has_its_figures(
    scored: Workspace, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(scored.root)
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{tmp_path}/config")
    assert main(["attest", "digits:rdk-x5/compiled"]) == 0
    text = out(scored, f"{BUNDLE}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    component = json.loads(text)["metadata"]["component"]
    metrics = component["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    assert {("top1", "compiled, 120 files"), ("top1", "float, 120 files")} <= {
        (each["type"], each["slice"]) for each in metrics
    }
    assert not out(scored, "digits.ara240.hybrid.cdx.json").exists()


def test_both_name_the_trained_model_every_sample_and_every_tool(attested: Workspace) -> None:
    definition = document(attested, ".intoto.json")["predicate"]["buildDefinition"]
    resolved = {each["name"]: each for each in definition["resolvedDependencies"]}
    for name in ("model.onnx", *(file.name for file in attested.project.glob("samples/*.npy"))):
        (file,) = attested.project.rglob(name)
        assert resolved[name]["digest"]["sha256"] == digest.of_file(file)
    assert resolved["onnx"]["uri"] == f"pkg:pypi/onnx@{onnx.__version__}"
    bill = document(attested, ".cdx.json")
    components = {each["name"]: each for each in bill["components"]}
    assert components["model.onnx"]["hashes"][0]["content"] == digest.of_file(
        attested.project / "model.onnx"
    )
    assert len(components["data.image.files"]["components"]) == 64
    references = {each["bom-ref"] for each in bill["components"]}
    assert references == set(bill["dependencies"][0]["dependsOn"])


def test_no_document_names_this_machine_or_a_time(attested: Workspace) -> None:
    for suffix in (".intoto.json", ".cdx.json"):
        text = out(attested, f"{BUNDLE}{suffix}").read_text()
        assert str(attested.root) not in text
        assert not re.search(r"20\d\d-\d\d-\d\dT", text)


@pytest.mark.slow
def test_an_absolute_path_in_the_yaml_is_in_no_document_and_may_change(
    here, tmp_path, capsys
) -> None:
    file = here.project / "project.yaml"
    text = file.read_text()
    lake = tmp_path / "lake"
    here.project.joinpath("samples").rename(lake)
    file.write_text(text.replace("samples/*.npy", f"{lake}/*.npy"))
    assert main(["attest"]) == 0
    for suffix in (".intoto.json", ".cdx.json"):
        assert str(tmp_path) not in out(here, f"{BUNDLE}{suffix}").read_text()
    lake.rename(here.project / "samples")
    file.write_text(text)
    assert verified(here, "--rebuild") == 0


@pytest.mark.slow
def test_the_same_build_gives_the_same_bytes_in_another_folder(attested, tmp_path, monkeypatch):
    other = copied(attested, tmp_path / "other")
    monkeypatch.chdir(other.root)
    assert main(["attest", "--sign", "-o", f"{tmp_path}/again"]) == 0
    written = sorted((tmp_path / "again").iterdir())
    assert len(written) == 2 * 4
    for file in written:
        assert file.read_bytes() == out(attested, file.name).read_bytes()


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["digits:rdk-x5/quantized"], "is not a compiled file"),
        (["digit"], "no project `digit`"),
        (["--sign"], "there is no signing key"),
    ],
)
def test_a_mistake_is_one_error(here: Workspace, capsys: Output, names, what) -> None:
    assert main(["attest", *names]) == 2
    assert what in capsys.readouterr().err


def test_what_is_not_current_is_not_attested(here: Workspace, capsys: Output) -> None:
    file = here.project / "project.yaml"
    file.write_text(file.read_text().replace("method: max", "method: kl"))
    assert main(["attest"]) == 2
    assert "is not current" in capsys.readouterr().err


# -- the chain ---------------------------------------------------------------------------------


def test_a_bundle_holds_the_digests_down_to_the_trained_model(built_once: Workspace) -> None:
    chain = Bundle.load(out(built_once)).provenance["chain"]
    assert chain["trained"] == {"model.onnx": digest.of_file(built_once.project / "model.onnx")}
    for stage in ("original_float", "optimized_float"):
        assert chain[stage] == digest.of_file(out(built_once, f"{stage}.onnx"))
    for stage in ("calibrated", "quantized"):
        assert chain[stage] == digest.of_file(out(built_once, f"{stage}.rdk-x5.onnx"))
    assert len(chain) == 5


# -- what is verified --------------------------------------------------------------------------


def test_a_signed_file_passes(attested: Workspace, capsys: Output) -> None:
    assert verified(attested, "--signed") == 0
    told = capsys.readouterr().out
    assert "statement: signed by this machine" in told
    assert "chain: 5 links down to model.onnx" in told


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def forge(workspace: Workspace, change: Callable[[dict], None]) -> None:  # type: ignore[type-arg]
    file = out(workspace, f"{BUNDLE}.intoto.dsse.json")
    envelope = json.loads(file.read_bytes())
    change(envelope)
    file.write_text(json.dumps(envelope))


def changed_payload(envelope: dict) -> None:  # type: ignore[type-arg]
    payload = base64.b64decode(envelope["payload"]).replace(b"rdk-x5", b"rdk-x3")
    envelope["payload"] = base64.b64encode(payload).decode()


def other_type(envelope: dict) -> None:  # type: ignore[type-arg]
    envelope["payloadType"] += "+other"


def other_signer(envelope: dict) -> None:  # type: ignore[type-arg]
    envelope["signatures"][0]["keyid"] = key_text(bytes(32))


def no_signature(envelope: dict) -> None:  # type: ignore[type-arg]
    envelope["signatures"] = []


def signature_of_another_tool(envelope: dict) -> None:  # type: ignore[type-arg]
    envelope["signatures"] = [{"keyid": "SHA256:abc", "sig": "AA=="}, {}, {"sig": 1}]


def test_a_signature_of_another_tool_beside_ours_does_no_harm(attested: Workspace) -> None:
    forge(attested, lambda envelope: envelope["signatures"].insert(0, {"keyid": "x", "sig": "y"}))
    assert verified(attested, "--signed") == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (changed_payload, "does not carry the signature"),
        (other_type, "does not carry the signature"),
        (other_signer, "a key that trust.yaml lacks"),
        (no_signature, "is not signed"),
        (signature_of_another_tool, "is not signed"),
    ],
    ids=["payload", "type", "signer", "none", "other tool"],
)
def test_an_envelope_that_was_changed_is_refused(attested, capsys, change, what) -> None:
    forge(attested, change)
    assert verified(attested) == 6
    assert what in capsys.readouterr().err


@pytest.mark.parametrize("key", ["foreign", "revoked"])
def test_a_key_that_is_not_trusted_is_refused(attested, capsys, tmp_path, key) -> None:
    envelope = document(attested, ".intoto.dsse.json")
    own = envelope["signatures"][0]["keyid"]
    other = key_text(generate(tmp_path / "other.key"))
    revoked = f"[{own}]" if key == "revoked" else "[]"
    named = own if key == "revoked" else other
    attested.root.joinpath("trust.yaml").write_text(
        f"read: {{ci: '{named}'}}\nrevoked: {revoked}\n".replace(f"[{own}]", f"['{own}']")
    )
    assert verified(attested) == 6
    error = capsys.readouterr().err
    assert ("revoked" if key == "revoked" else "a key that trust.yaml lacks") in error


def test_the_signed_bytes_are_those_of_the_specification() -> None:
    # The example of the DSSE specification.
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_an_unsigned_statement_is_refused_where_a_signature_is_asked_for(here, capsys) -> None:
    main(["attest"])
    assert verified(here) == 0
    assert "statement: not signed" in capsys.readouterr().out
    assert verified(here, "--signed") == 6
    assert "the statement is not signed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".intoto.json", "{}"),
        (".intoto.json", "[" * 10_000),
        (".intoto.json", '{"_type": "https://in-toto.io/Statement/v1", "predicateType": "x"}'),
        (".intoto.json", "\x00"),
        (".intoto.json", '{"payload": "", "payloadType": "x", "signatures": 1}'),
    ],
)
def test_a_file_that_is_no_statement_is_one_error(here, capsys, suffix, text) -> None:
    out(here, f"{BUNDLE}{suffix}").write_text(text)
    assert verified(here) == 2
    assert capsys.readouterr().err.startswith("error: not a statement of npumake")


BUILD = ("predicate", "buildDefinition")
ROUTES = {  # to the values that are sound there, of TYPES
    ("subject",): (),
    ("subject", 0, "digest"): (),
    (*BUILD, "externalParameters"): (),
    (*BUILD, "externalParameters", "sections"): ({}, {"a": 1}),
    (*BUILD, "internalParameters", "nodes"): ({},),
    (*BUILD, "internalParameters", "target"): ({}, {"a": 1}),
    (*BUILD, "resolvedDependencies"): ([],),
    (*BUILD, "resolvedDependencies", 0, "digest"): (),
    ("predicate", "runDetails", "byproducts"): ([],),
    ("predicate", "runDetails", "byproducts", 0, "digest", "sha256"): (),
}
TYPES = ([], {}, 1, None, "x", [1], {"a": 1})


@pytest.mark.parametrize("value", TYPES, ids=str)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: ".".join(map(str, route)))
def test_a_statement_of_wrong_types_is_an_error_of_ours(attested_once, route, value):
    statement = json.loads(attested_once)
    inner = statement
    for key in route[:-1]:
        inner = inner[key]
    inner[route[-1]] = value
    data = json.dumps(statement).encode()
    if value in ROUTES[route]:
        read_statement(data, "file")
    else:
        with pytest.raises(ProjectError, match="not a statement of npumake"):
            read_statement(data, "file")


def test_what_is_missing_is_one_error(here: Workspace, capsys: Output) -> None:
    assert verified(here) == 2
    assert "the file has no statement" in capsys.readouterr().err
    assert main(["verify"]) == 2
    assert main(["verify", "no_such.hybrid"]) == 2


def test_a_changed_file_is_refused(attested: Workspace, capsys: Output) -> None:
    flip(out(attested))
    assert verified(attested) == 6
    assert "not the file of the statement" in capsys.readouterr().err


# -- the rebuild -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_rebuild_is_equal_to_the_byte_and_leaves_the_project_alone(attested, capsys) -> None:
    before = attested.digests()
    assert verified(attested, "--rebuild") == 0
    assert "rebuilt: equal to the byte" in capsys.readouterr().out
    assert attested.digests() == before


def test_a_changed_project_is_told_by_key_and_by_file(attested, capsys) -> None:
    file = attested.project / "project.yaml"
    file.write_text(file.read_text().replace("method: max", "method: kl"))
    flip(attested.project / "samples/0003.npy")
    attested.project.joinpath("samples/0004.npy").unlink()
    assert verified(attested, "--rebuild") == 6
    error = capsys.readouterr().err
    assert "calibration.method: max → kl   (project.yaml:17)" in error
    assert "data.image.files 0003.npy: changed" in error
    assert "data.image.files 0004.npy: removed" in error


def restated(workspace: Workspace, artifacts: dict[str, Path]) -> None:
    """A statement that has the digests of these files, as another machine would have written."""
    file = out(workspace, f"{BUNDLE}.intoto.json")
    statement = json.loads(file.read_bytes())
    statement["subject"][0]["digest"]["sha256"] = digest.of_file(out(workspace))
    for each in statement["predicate"]["runDetails"]["byproducts"]:
        if each["name"] in artifacts:
            each["digest"]["sha256"] = digest.of_file(artifacts[each["name"]])
    file.write_text(json.dumps(statement))
    out(workspace, f"{BUNDLE}.intoto.dsse.json").unlink()


def with_other_weight(file: Path) -> str:
    """One weight of a quantized graph is another; returns its name."""
    proto = onnx.load(file)
    tensor = next(
        each for each in proto.graph.initializer if len(each.dims) == 4 and np.prod(each.dims) > 8
    )
    values = numpy_helper.to_array(tensor).copy()
    values.flat[5] ^= 1
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(proto, file)
    return tensor.name


def with_other_constant(file: Path, chain: dict[str, str] | None = None) -> str:
    bundle = Bundle.load(file)
    steps = list(bundle.program.instructions)
    index = next(
        i for i, step in enumerate(steps) if step.constants.get("weight", np.empty(0)).size > 8
    )
    weight = np.array(steps[index].constants["weight"])
    weight.flat[3] ^= 1
    steps[index] = replace(steps[index], constants={**steps[index].constants, "weight": weight})
    program = replace(bundle.program, instructions=tuple(steps))
    links = {**bundle.provenance["chain"], **(chain or {})}
    replace(bundle, program=program, provenance={**bundle.provenance, "chain": links}).save(file)
    return f"{steps[index].name}.weight"


@pytest.mark.slow
def test_a_difference_in_the_compiled_file_names_the_tensor(attested, capsys) -> None:
    name = with_other_constant(out(attested))
    restated(attested, {})
    assert verified(attested, "--rebuild") == 6
    error = capsys.readouterr().err
    assert f"differs, first in `rdk-x5/compiled`: tensor `{name}`: 1 of" in error


@pytest.mark.slow
def test_a_difference_before_it_names_the_first_stage_and_its_tensor(attested, capsys) -> None:
    quantized = out(attested, "quantized.rdk-x5.onnx")
    name = with_other_weight(quantized)
    with_other_constant(out(attested), {"quantized": digest.of_file(quantized)})
    restated(attested, {"rdk-x5/quantized": quantized})
    assert verified(attested, "--rebuild") == 6
    error = capsys.readouterr().err
    assert f"differs, first in `rdk-x5/quantized`: tensor `{name}`" in error


@pytest.mark.slow
def test_without_the_first_artifact_the_tensor_is_that_of_the_compiled_file(
    attested, capsys, tmp_path
) -> None:
    other = tmp_path / "quantized.onnx"
    other.write_bytes(out(attested, "quantized.rdk-x5.onnx").read_bytes())
    with_other_weight(other)
    name = with_other_constant(out(attested), {"quantized": digest.of_file(other)})
    restated(attested, {"rdk-x5/quantized": other})
    assert verified(attested, "--rebuild") == 6
    error = capsys.readouterr().err
    assert f"first in `rdk-x5/quantized`: rdk-x5/compiled: tensor `{name}`" in error


def test_a_chain_that_is_not_the_statements_is_refused(attested, capsys) -> None:
    with_other_constant(out(attested), {"calibrated": "0" * 64})
    restated(attested, {})
    assert verified(attested) == 6
    assert "`calibrated` in the chain of the file" in capsys.readouterr().err


def test_a_file_elsewhere_is_rebuilt_from_the_project_that_is_named(attested, capsys, tmp_path):
    for suffix in ("", ".intoto.json"):
        name = f"{BUNDLE}{suffix}"
        tmp_path.joinpath(name).write_bytes(out(attested, name).read_bytes())
    file = tmp_path / BUNDLE
    assert verified(attested, "--rebuild", file=file) == 2
    assert "--project" in capsys.readouterr().err
    file_of_project = attested.project / "project.yaml"
    file_of_project.write_text(file_of_project.read_text().replace("- rdk-x5", "- rdk-x3"))
    assert verified(attested, "--rebuild", f"--project={attested.project}", file=file) == 6
    assert "the project does not build `rdk-x5`" in capsys.readouterr().err
