"""Names that command a terminal: no verb lets them through, whatever it tells of them."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from rich.table import Table

from malformed.models import outside
from malformed.runner import Server
from npumake.cli.console import PrintedConsole
from npumake.cli.main import VERBS
from npumake.cli.terminal import Printed, printable
from npumake.graph import parse_text
from workspaces import lay_out_none

# Colours, a title, a line begun anew, a bell, C1's own escape, the direction turned, rich's markup.
HOSTILE = "\x1b[31m\x1b]0;t\x07\r\x08\x9b2J\u202e\u2066\u2028[/red][bold]"
OBEYED = re.compile("[^\n\t -~\u00a1-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\ud7ff]")
NODES = """agraph (float[1,2,4,4] x) => (float[1,2,4,4] y, float[1,8] z)
    <float[2,2,1,1] w = {1.0, -0.5, 0.25, 2.0}, int64[2] flat = {1, -1}, float[32,8] v = {VALUES}> {
    c = Conv(x, w)  r = Relu(c)  y = Erf(r)  f = Reshape(r, flat)  z = MatMul(f, v) }""".replace(
    "VALUES", ", ".join(str(i % 7 - 3.0) for i in range(256))
)
INPUT = "x[/red][bold]"  # YAML holds no other characters
YAML = """model: {{path: model.onnx}}
data: {{{name}: {{files: samples/*.npy}}}}
targets: [rdk-x5, ara240]
"""


class Place(NamedTuple):
    project: Path
    built: str  # what the build said


@pytest.fixture(scope="module")
def place(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A model whose every name is hostile, built."""
    project = lay_out_none(tmp_path_factory.mktemp("escapes") / "w", "n").project
    (project / "samples").mkdir(parents=True)
    (project / "folder\x1b[31m").mkdir()
    graph = parse_text(NODES)
    for node in graph.nodes():
        node.name = f"{node.op_type}{HOSTILE}"
        for value in node.outputs:
            value.name = f"{value.name}{HOSTILE}"
    graph.inputs[0].name = INPUT
    (project / "model.onnx").write_bytes(graph.to_bytes())
    rng = np.random.default_rng(0)
    for number in range(8):
        sample = rng.normal(size=(1, 2, 4, 4)).astype(np.float32)
        np.save(project / f"samples/{number}\x1b[31m.npy", sample)
    (project / "project.yaml").write_text(YAML.format(name=f'"{INPUT}"'))
    found = server.run(project, ("build",))
    assert found.code == 0, found.output
    return Place(project, found.output)


def harmless(output: str) -> None:
    assert not OBEYED.findall(output), [line for line in output.splitlines() if OBEYED.search(line)]
    assert "Traceback" not in output, output


BUNDLE, QUANTIZED = "out/n.ara240.hybrid", "out/quantized.ara240.onnx"
HB_MAPPER = ("--model-type", "onnx", "--march", "bayes-e")
SYNAP = ("--target", "SL1680", "--out-dir", "made")
SAMPLE = "samples/0\x1b[31m.npy"
COMMANDS = {
    "attest": (("attest", BUNDLE), ("attest", "\x1b[31m")),
    "bench": (("bench", BUNDLE, "--frame_count", "1", "--profiling"),),
    "build": (("build", "--paranoid"), ("build", "n:\x1b[31mx"), ("build", "--json")),
    "bundle": (("bundle", ".", "-o", "packed\x1b[31m.zip"), ("bundle", "\x1b[31m")),
    "cache": (("cache", "push", "\x1b[31m"), ("cache", "keygen", "\x1b[31m/key")),
    "check": (("check", "model.onnx", "--target", "rdk-x5"), ("check", "."), ("check", "\x1b[31m")),
    "ci": (("ci", "--since", "\x1b[31m"), ("ci",)),
    "compare": (("compare", "n:ara240", "--dump", "\x1b[31m"), ("compare", "\x1b[31m")),
    "completion": (("completion", "bash"), ("completion", "\x1b[31m")),
    "debug": (("debug", "get_sensitivity_of_nodes", "n:ara240")),
    "diff": (("diff", QUANTIZED, "n:rdk-x5/quantized"),),
    "doctor": (("doctor",), ("doctor", "--target", "\x1b[31m")),
    "graph": (("graph",), ("graph", "\x1b[31m")),
    "handover": (("handover", ".", "--target", "ara240", "--out", "handed"),),
    "hb_compile": (("hb_compile", "--march", "nash-e", "--model", "\x1b[31m.onnx"),),
    "hb_mapper": (("hb_mapper", "checker", *HB_MAPPER, "--model", "model.onnx"),),
    "info": (("info", BUNDLE),),
    "list": (("list",),),
    "lock": (("lock",), ("lock", "\x1b[31m")),
    "modify": (("modify", BUNDLE), ("modify", BUNDLE, "-r", f"x{HOSTILE}")),
    "new": (("new", "other", "--model", "model.onnx"),),
    "pack": (("pack", BUNDLE, BUNDLE, "-o", "packed\x1b[31m.hybrid"),),
    "perf": (("perf", BUNDLE), ("perf", ".")),
    "precision": (("precision", "n:ara240", "--cosine", "0.9999", "--dry-run"),),
    "preprocess": (("preprocess", "-m", "\x1b[31m", "-i", "samples", "-o", "made"),),
    "report": (("report", "\x1b[31m"), ("report", "--workspace", "--output", "site\x1b[31m")),
    "run": (("run", BUNDLE, "-i", f"{INPUT}={SAMPLE}"), ("run", QUANTIZED, "-i", SAMPLE)),
    "secure": (("secure", BUNDLE, "-o", "sealed\x1b[31m.hybrid"),),
    "show": (("show", BUNDLE), ("show", QUANTIZED), ("show", "model.onnx"), ("show", "\x1b[31m")),
    "synap": (("synap", "convert", *SYNAP, "--model", "model.onnx"),),
    "targets": (("targets",),),
    "validate": (("validate",), ("validate", "\x1b[31m")),
    "verify": (("verify", "-q", QUANTIZED, "-b", BUNDLE),),
    "watch": (("watch", "\x1b[31m"),),
    "why": (("why",), ("why", "\x1b[31m")),
    "worker": (("worker", "\x1b[31m", "--version"), ("worker", "folder\x1b[31m")),
}


def test_every_verb_is_tried() -> None:
    assert COMMANDS.keys() == VERBS.keys()


def test_a_build_tells_of_hostile_names_spelled_out(place: Place) -> None:
    harmless(place.built)


@pytest.mark.slow(cases=18)
@pytest.mark.parametrize("verb", COMMANDS)
def test_no_verb_lets_a_name_command_the_terminal(verb: str, server: Server, place: Place) -> None:
    for command in COMMANDS[verb]:
        harmless(server.run(place.project, command).output)


def test_what_was_typed_and_is_no_option_is_spelled_out(server: Server, place: Place) -> None:
    found = server.run(place.project, ("list", "--\x1b[31m"))
    assert "unrecognized arguments: --\\x1b[31m" in found.output
    harmless(found.output)


def test_an_error_of_a_hostile_file_is_spelled_out(server: Server, place: Place) -> None:
    (place.project / "bad\x1b[31m.onnx").write_bytes(outside(f"w{HOSTILE}"))
    found = server.run(place.project, ("check", "bad\x1b[31m.onnx", "--target", "rdk-x5"))
    assert "\\x1b[31m" in found.output
    harmless(found.output)


def test_a_table_on_a_terminal_commands_nothing_but_colours() -> None:
    stream = io.StringIO()
    console = PrintedConsole(file=stream, force_terminal=True, color_system="standard", width=80)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE, style="red")
    console.print(table)
    console.print(HOSTILE, style="red")
    harmless(
        re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue().replace("\x1b[31m" + "\\x1b", "\\x1b"))
    )
    assert "[/red][bold]" in stream.getvalue()


def test_printable_text_stays_as_it_is() -> None:
    text = "größer → 测试 — ✓\n\tüber"
    assert printable(text) == text
    assert printable("\U000e0001\ud800\x7f") == "\\U000e0001\\ud800\\x7f"


def test_whatever_is_printed_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Printed(sys.stdout)
    print(HOSTILE, "a", file=stream)  # type: ignore[call-overload]
    stream.writelines([HOSTILE])
    harmless(capsys.readouterr().out)
    assert stream.encoding == sys.stdout.encoding
