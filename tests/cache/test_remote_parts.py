"""The parts of the remote store that need no server."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from npumake.cache.remote.address import ANONYMOUS, SCHEMES, Credentials, origin_of, parsed
from npumake.cache.remote.envelope import Envelope, key_bytes, key_text, packed, unpacked
from npumake.cache.remote.keys import Secret, SigningKey, generate
from npumake.cache.remote.ledger import (
    MAX_FAILURES,
    MIN_OPERATION_S,
    START_S,
    WASTE_SHARE,
    Ledger,
    Rates,
    pays,
)
from npumake.cache.remote.trust import Policy
from npumake.cache.store import Record
from npumake.digest import of_document
from npumake.errors import ProjectError
from remote_stores import document, signing

DIGEST = "ab" * 32
RECORD = Record(document("a"), DIGEST, 300, 1.5)
KEY = of_document(RECORD.document)

# -- envelope: what a stock bazel-remote takes for an ActionResult ----------------------------


def action_result() -> type:
    """ActionResult of the Remote Execution API v2, as far as its validation looks into it."""
    text, number, message = 9, 3, 11
    file = descriptor_pb2.FileDescriptorProto(name="re.proto", package="re", syntax="proto3")
    for name, fields in {
        "Digest": [("hash", 1, text, ""), ("size_bytes", 2, number, "")],
        "OutputFile": [("path", 1, text, ""), ("digest", 2, message, ".re.Digest")],
        "ActionResult": [("output_files", 2, message, ".re.OutputFile"), ("stdout_raw", 5, 12, "")],
    }.items():
        kind = file.message_type.add(name=name)
        for called, tag, type_, of in fields:
            label = 3 if called == "output_files" else 1
            kind.field.add(name=called, number=tag, type=type_, type_name=of or None, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("re.ActionResult"))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 1 << 30, (1 << 63) - 1])
def test_an_envelope_is_an_action_result_that_names_the_artifact(size: int) -> None:
    data = packed(Envelope(KEY, replace(RECORD, size=size), None, None))
    result = action_result()()
    assert result.ParseFromString(data) == len(data)
    (file,) = result.output_files
    assert (file.path, file.digest.hash, file.digest.size_bytes) == ("artifact", DIGEST, size)
    assert json.loads(result.stdout_raw)["digest"] == DIGEST


def test_an_envelope_comes_back_as_it_was(tmp_path: Path) -> None:
    envelope = signing(tmp_path).sign(KEY, RECORD)
    assert unpacked(packed(envelope)) == envelope
    assert packed(envelope) == packed(signing(tmp_path).sign(KEY, RECORD))


@given(st.binary(max_size=200))
def test_any_bytes_are_an_envelope_or_none(data: bytes) -> None:
    assert unpacked(data) is None


@pytest.fixture(scope="module")
def envelope(tmp_path_factory: pytest.TempPathFactory) -> Envelope:
    """Signed by the writer."""
    return signing(tmp_path_factory.mktemp("keys")).sign(KEY, RECORD)


def policy_of(envelope: Envelope) -> Policy:
    return Policy(lambda: {envelope.signer or b"": "writer"})


@given(st.data())
def test_a_changed_envelope_is_not_trusted(envelope: Envelope, data: st.DataObject) -> None:
    whole = packed(envelope)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    verdict = policy_of(envelope).judge(KEY, changed)
    assert verdict.record is None or verdict.record == RECORD  # its outer parts say nothing


@pytest.mark.parametrize(
    "change",
    [
        {"size": -1},
        {"size": True},
        {"size": 1.5},
        {"digest": "../../etc"},
        {"digest": None},
        {"seconds": -1},
        {"seconds": "1"},
        {"seconds": math.inf},
        {"signer": "ed25519:AAAA"},
        {"signer": 7},
        {"signature": "not base64!"},
        {"document": None},
    ],
)
def test_an_envelope_with_a_wrong_field_is_none_or_not_trusted(
    envelope: Envelope, change: dict[str, object]
) -> None:
    body = {
        "document": RECORD.document,
        "digest": RECORD.digest,
        "size": RECORD.size,
        "seconds": RECORD.seconds,
        "signer": key_text(envelope.signer or b""),
        "signature": "",
        **change,
    }
    text = json.dumps(body).encode()
    size = bytes([len(text) & 0x7F | 0x80, len(text) >> 7])
    assert policy_of(envelope).judge(KEY, b"\x2a" + size + text).record is None


# -- keys --------------------------------------------------------------------------------------


def test_a_key_comes_from_a_file_a_variable_or_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "deep" / "key"
    public = generate(file)
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("THE_KEY", file.read_text())
    for secret in (Secret(file=file), Secret(env="THE_KEY"), Secret(command=("cat", str(file)))):
        assert SigningKey(secret).public == public
    assert key_bytes(key_text(public)) == public


def test_a_key_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    generate(tmp_path / "key")
    before = (tmp_path / "key").read_bytes()
    with pytest.raises(ProjectError, match="the key file exists already"):
        generate(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == before


@pytest.mark.parametrize(
    ("secret", "what"),
    [
        (Secret(env="NPUMAKE_NO_SUCH"), "is not set, or empty"),
        (Secret(file=Path("/no/such/key")), "cannot read /no/such/key"),
        (Secret(command=("false",)), "`false` ended with 1"),
        (Secret(command=("/no/such/program",)), "did not run"),
        (Secret(command=("echo", "no key")), "is not an unencrypted private key"),
    ],
)
def test_a_key_that_cannot_be_read_is_told(secret: Secret, what: str) -> None:
    with pytest.raises(ProjectError, match=what):
        SigningKey(secret).sign(KEY, RECORD)


# -- address -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "origin", "shown"),
    [
        ("http://h/", "http://h", "http://h"),
        ("https://h:443/a/b/", "https://h", "https://h/a/b"),
        ("https://H.example:8443", "https://h.example:8443", "https://h.example:8443"),
        ("http://[::1]:80/x", "http://[::1]", "http://[::1]/x"),
        ("s3://bucket/pre/fix", "s3://bucket", "s3://bucket/pre/fix"),
        ("file:///mnt/share/", "file:///mnt/share", "file:///mnt/share"),
    ],
)
def test_an_address_has_an_origin(url: str, origin: str, shown: str) -> None:
    address, inside = parsed(url, "x")
    assert (address.origin, str(address), inside) == (origin, shown, ANONYMOUS)
    assert origin_of(origin, "x") == origin


def test_no_secret_is_shown() -> None:
    address, inside = parsed("https://me:the%20secret@h/x", "x")
    assert inside == Credentials("me", "the secret")
    shown = f"{address} {address!r} {inside!r} {Credentials(token='the secret')!r}"
    assert "secret" not in shown


@pytest.mark.parametrize(
    "url",
    ["", "cache", "ftp://h", "http://", "http:///x", "s3://", "http://h:99999", "http://h:x",
     "http://h/?a=b", "http://h/#a", "http://h/a b", "file://host/x", "file:x", "http://[::1"],
)  # fmt: skip
def test_what_is_no_remote_is_refused(url: str) -> None:
    with pytest.raises(ProjectError):
        parsed(url, "x")


def test_every_scheme_is_known() -> None:
    for scheme in SCHEMES:
        assert parsed(f"{scheme}:///x" if scheme == "file" else f"{scheme}://x/y", "x")


# -- ledger ------------------------------------------------------------------------------------

SECONDS = st.floats(0, 20)


@given(st.lists(st.tuples(st.sampled_from(["waste", "earn", "fail", "settle"]), SECONDS, SECONDS)))
def test_what_is_wasted_is_bounded_whatever_happens(events: list[tuple[str, float, float]]) -> None:
    """By the bound, a share of what the build did, and what the one operation that broke it was
    allowed."""
    ledger, earned = Ledger(bound=10.0), 0.0
    for what, seconds, making in events:
        if ledger.is_open:
            break
        spent = min(seconds, ledger.left)
        if what == "earn":
            ledger.earn(seconds)
            earned += seconds
        elif what == "settle":
            ledger.settle(min(seconds, making + START_S), making)
            earned += making
        elif what == "fail":
            ledger.fail(spent, "x", lasting=False)
            ledger.succeed()
        else:
            ledger.waste(spent, "x")
    assert ledger.wasted <= 10.0 + WASTE_SHARE * earned + MIN_OPERATION_S + 1e-9


def test_failures_in_a_row_open_the_breaker() -> None:
    ledger = Ledger(bound=10.0)
    for number in range(MAX_FAILURES):
        assert not ledger.is_open, number
        ledger.fail(0.0, "500", lasting=False)
    assert ledger.reason == "500"


def test_a_lasting_failure_opens_it_at_once() -> None:
    ledger = Ledger(bound=10.0)
    ledger.fail(0.0, "401", lasting=True)
    assert ledger.reason == "401"


@given(st.integers(1, 1 << 30), st.floats(1e-3, 1e3))
def test_a_steady_bandwidth_is_measured_as_it_is(size: int, seconds: float) -> None:
    rates = Rates()
    for _ in range(5):
        rates.transferred(size + (1 << 16), seconds)
    predicted = rates.predicted(size + (1 << 16))
    assert math.isclose(predicted, seconds, rel_tol=1e-9)


def test_fetching_pays_up_to_the_time_that_making_takes_and_its_start() -> None:
    assert pays(5.0 + START_S, 5.0)
    assert not pays(5.1 + START_S, 5.0)
