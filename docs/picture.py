"""Draw docs/build.svg: a real build of projects/digits, as a terminal shows it.

python docs/picture.py          # needs pyte, a terminal in Python
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyte
from rich.console import Console
from rich.text import Text

REPO = Path(__file__).parents[1]
WIDTH, HEIGHT = 100, 200


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copy(REPO / "dodo.py", root)
        project = root / "projects" / "digits"
        ignored = shutil.ignore_patterns("out", ".doit.db*", "__pycache__")
        shutil.copytree(REPO / "projects" / "digits", project, ignore=ignored)
        yaml = project / "project.yaml"
        yaml.write_text(yaml.read_text().replace("  - ara240 # asymmetric int8 activations\n", ""))
        with open(os.devnull, "w") as nowhere:
            console = Console(width=WIDTH, record=True, file=nowhere)
            show(console, "doit", in_terminal(root, ["-m", "doit"]))
            yaml.write_text(yaml.read_text().replace("method: max", "method: kl"))
            show(console, "sed -i 's/method: max/method: kl/' projects/digits/project.yaml")
            why = in_terminal(root, ["-m", "npumake.cli.main", "why"])
            show(console, "npumake why", why)
            console.save_svg(str(REPO / "docs" / "build.svg"), title="npumake")


def show(console: Console, command: str, output: Text | None = None) -> None:
    console.print(Text.assemble(("$ ", "bold"), (command, "bold")))
    if output:
        console.print(output, soft_wrap=True)


def in_terminal(root: Path, command: list[str]) -> Text:
    """What a terminal shows once the command has ended."""
    parent, child = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "CI"}
    environment |= {"COLUMNS": str(WIDTH), "LINES": str(HEIGHT), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=root, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    screen = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.ByteStream(screen)
    while chunk := _read(parent):
        stream.feed(chunk)
    process.wait()
    lines = [_text(screen.buffer[row]) for row in range(HEIGHT)]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return Text("\n").join(lines)


def _text(row: dict[int, pyte.screens.Char]) -> Text:
    line = Text()
    for column in range(WIDTH):
        char = row[column]
        colour = {"default": "", "brown": "yellow"}.get(char.fg, char.fg)
        line.append(char.data, f"{'bold ' if char.bold else ''}{colour}".strip())
    line.rstrip()
    return line


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other end is closed: Linux says EIO
        return b""


if __name__ == "__main__":
    main()
