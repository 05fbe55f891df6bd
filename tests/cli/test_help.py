"""`npumake --help`: every verb, without an import of any."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import pytest

from npumake.cli.main import ALIASES, VERBS, main

Output = pytest.CaptureFixture[str]
OUR_MODULES = "print(*sorted(x for x in sys.modules if x.startswith('npumake')), file=sys.stderr)"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_help_has_the_summary_of_every_verb(flag: str, capsys: Output) -> None:
    assert main([flag]) == 0
    lines = capsys.readouterr().out.splitlines()
    for verb, module in VERBS.items():
        summary = (import_module(f"npumake.cli.{module}").__doc__ or "").splitlines()[0]
        (line,) = [line for line in lines if line.split()[:1] == [verb]]
        assert line.removeprefix(f"  {verb}").strip() == summary.partition(": ")[2]


def test_the_help_leaves_the_vendors_names_out(capsys: Output) -> None:
    main(["--help"])
    words = capsys.readouterr().out.split()
    assert [name for name in ALIASES if name in words] == []


def test_the_help_imports_the_table_of_verbs_and_nothing_else() -> None:
    script = f"import sys; from npumake.cli.main import main; main(['--help']); {OUR_MODULES}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stderr.split() == ["npumake", "npumake.cli", "npumake.cli.main"]


def test_the_help_is_printed_where_no_character_but_ascii_is() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "npumake", "--help"]
    run = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert b"verbs:" in run.stdout
    assert run.stdout.isascii()


@pytest.mark.parametrize("word", ["--version", "biuld"])
def test_the_version_and_a_wrong_verb_import_no_verb(word: str) -> None:
    main_line = f"from npumake.cli.main import main; main(['{word}'])"
    script = f"import atexit, sys; atexit.register(lambda: {OUR_MODULES}); {main_line}"
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    loaded = run.stderr.splitlines()[-1].split()
    assert "npumake.cli.verb" in loaded
    assert [name for name in VERBS.values() if f"npumake.cli.{name}" in loaded] == []


def test_a_wrong_verb_is_an_error_with_the_nearest_or_all(capsys: Output) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["biuld"])
    assert "did you mean `build`?" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["zzz"])
    assert f"known: {', '.join(VERBS)}" in capsys.readouterr().err
