"""YAML text → plain data and places."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from npumake.errors import Place, ProjectError
from npumake.project import events
from npumake.project.document import Document, RoutePlace, parse_document, read_document


def data(text: str) -> object:
    return parse_document(text.encode(), "p.yaml").data


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("1e-3", 0.001), ("0.00001", 1e-5), (".5", 0.5), ("1.", 1.0), ("-1.5E+2", -150.0)),
        *(("0", 0), ("-12", -12), ("+7", 7), ("0x1F", 31)),
        *(("true", True), ("false", False), ("null", None), ("~", None), ("", None)),
        *(("1_000", "1_000"), ("007", "007"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01")),
        *(("0o17", "0o17"), ("1e", "1e"), (".", "."), ("e5", "e5"), ("v1.2.3", "v1.2.3")),
        *(('"yes"', "yes"), ("'1e-3'", "1e-3"), ('""', ""), ("yes please", "yes please")),
    ],
)
def test_a_word_means_what_a_person_reads(word, value):
    read = data(f"k: {word}")["k"]
    assert read == value
    assert type(read) is type(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_survives_the_text(number):
    assert data(f"k: {number!r}") == {"k": number}


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_survives_the_text(number):
    assert data(f"k: {number}") == {"k": number}


def test_nothing_is_an_empty_mapping():
    assert data("") == data("# a comment\n") == data("---\n") == {}


def test_keys_are_text_as_written():
    assert data("y: 1\n0: 2\ninput.1: 3\n") == {"y": 1, "0": 2, "input.1": 3}


def test_every_key_and_value_has_its_place():
    document = parse_document(b"a:\n  b: 1\nc: [x, {d: 2}]\n", "p.yaml")

    def at(line: int, column: int) -> Place:
        return Place("p.yaml", line, column)

    assert document.places == {
        (): RoutePlace(Place("p.yaml"), Place("p.yaml")),
        ("a",): RoutePlace(at(1, 1), at(1, 1)),
        ("a", "b"): RoutePlace(at(2, 3), at(2, 6)),
        ("c",): RoutePlace(at(3, 1), at(3, 4)),
        ("c", 0): RoutePlace(at(3, 5), at(3, 5)),
        ("c", 1): RoutePlace(at(3, 8), at(3, 8)),
        ("c", 1, "d"): RoutePlace(at(3, 9), at(3, 12)),
    }


def test_an_alias_is_its_anchor_written_again():
    document = parse_document(b"a: &m [1, {b: 2}]\nc: *m\n", "p.yaml")
    assert document.data["c"] == document.data["a"] == [1, {"b": 2}]
    assert document.places["c",] == RoutePlace(Place("p.yaml", 2, 1), Place("p.yaml", 1, 4))
    assert document.places["c", 1, "b"] == document.places["a", 1, "b"]


def test_a_byte_order_mark_moves_nothing():
    document = parse_document(b"\xef\xbb\xbfa: 1\n", "p.yaml")
    assert document.places["a",] == RoutePlace(Place("p.yaml", 1, 1), Place("p.yaml", 1, 4))


def test_a_chain_of_aliases_cannot_be_deeper_than_a_text():
    chain = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 70))
    with pytest.raises(ProjectError, match="nested more than 64 deep"):
        data(chain)


def test_a_very_deep_text_is_refused_at_once():
    with pytest.raises(ProjectError, match="nested more than 64 deep"):
        data("[" * 1_000_000)


def test_a_large_file_is_refused_unread(tmp_path):
    (tmp_path / "p.yaml").write_bytes(b"#" * (events.MAX_FILE_BYTES + 1))
    with pytest.raises(ProjectError, match="larger than 1024 KiB"):
        read_document(tmp_path / "p.yaml")


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ProjectError, match="cannot read the file: No such file"):
        read_document(tmp_path / "p.yaml")


def test_places_are_relative_to_the_current_directory(tmp_path, monkeypatch):
    (tmp_path / "p.yaml").write_text("a: 1")
    assert read_document(tmp_path / "p.yaml").path == (tmp_path / "p.yaml").as_posix()
    monkeypatch.chdir(tmp_path)
    assert read_document(tmp_path / "p.yaml").path == "p.yaml"


yaml_like = st.text(st.sampled_from("ab:-[]{},&*!|>'\"#%@`? \n\t0.e~<\x07\ufeffé"), max_size=40)


@given(yaml_like.map(str.encode) | st.binary(max_size=40))
def test_any_bytes_are_a_document_or_a_mistake_with_a_place(source):
    found: Document | ProjectError
    try:
        found = parse_document(source, "p.yaml")
    except ProjectError as mistake:
        found = mistake
    assert (found.path if isinstance(found, Document) else found.where.path) == "p.yaml"


@given(yaml_like.filter(lambda text: "?" not in text))
def test_both_parsers_of_pyyaml_find_the_same_places(text):
    """But for a `? key` without a value, which one of them ends on the line below."""
    fast = outcome(text, yaml.CSafeLoader)
    plain = outcome(text, yaml.SafeLoader)
    assert fast is None or plain is None or fast == plain


@pytest.mark.parametrize("text", ["---", "---\n", "--- # nothing\n\n", "# before\n---"])
@pytest.mark.parametrize("loader", [yaml.CSafeLoader, yaml.SafeLoader])
def test_nothing_stands_where_its_dashes_end(text, loader):
    """One of the parsers has it on the line below, which may not be there."""
    _, places = outcome(text, loader)
    row = text[: text.index("---")].count("\n") + 1
    assert places[()].value == Place("p.yaml", row, 4)


def outcome(text: str, loader: type) -> object:
    """Data and places, or None where the parsers may differ: on what they refuse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "_LOADER", loader)
        try:
            document = parse_document(text.encode(), "p.yaml")
        except ProjectError:
            return None
    return document.data, document.places
