"""Errors as a terminal shows them."""

import pytest

from npumake.cli.show import error_text
from npumake.errors import Place, ProjectError


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.npy", "a.npy"),
        ("é 猫.npy", "é 猫.npy"),
        ("a\x1b[2J.npy", r"a\x1b[2J.npy"),
        ("a\nb.npy", r"a\x0ab.npy"),
        ("\udcff.npy", r"\udcff.npy"),
    ],
)
def test_a_file_whose_name_a_terminal_would_obey_is_spelled_out(name, shown):
    assert error_text(ProjectError("no", name)) == f"error: no\n  --> {shown}"


def test_so_is_the_line_of_a_file(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("a: \x1b]0;x\n")
    told = error_text(ProjectError("no", Place(str(file), 1, 4), "x"))
    assert told.splitlines()[2:] == [r"1 | a: \x1b]0;x", "  |    ^", "hint: x"]
