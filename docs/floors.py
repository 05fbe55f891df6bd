"""Draw the floors of the package into docs/architecture.md, from FLOORS and its comments.

python docs/floors.py
"""

from __future__ import annotations

import re
from pathlib import Path

import npumake

PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- floors -->\n```text\n", "```\n<!-- /floors -->"
FLOOR = re.compile(r"^    \((.*?),?\),  # (.*)$", re.MULTILINE)
ROOMS_WIDTH = 62  # columns of the longest floor


def drawing(source: str) -> str:
    """One box per floor of `FLOORS` in `source`, the highest first."""
    floors = [
        (rooms.replace('"', "").split(", "), meaning) for rooms, meaning in FLOOR.findall(source)
    ]
    edge = "─" * (ROOMS_WIDTH + 2)
    lines = [f"┌{edge}┐"]
    for number, (rooms, meaning) in enumerate(floors):
        lines += [f"├{edge}┤"] if number else []
        lines.append(f"│ {', '.join(rooms):<{ROOMS_WIDTH}} │  {meaning}")
    return "\n".join([*lines, f"└{edge}┘", ""])


def drawn(page: str, source: str) -> str:
    """The page with the drawing between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{drawing(source)}{END}{after}"


def main() -> None:
    source = Path(npumake.__file__).read_text(encoding="utf-8")
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8"), source), encoding="utf-8")


if __name__ == "__main__":
    main()
