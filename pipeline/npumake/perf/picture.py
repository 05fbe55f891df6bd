"""The structure of a compiled model, subgraph by subgraph, as a PNG.

Dark cyan runs on the unit, gray on the CPU. Boxes are below those that they depend on, and side by
side if independent.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from PIL import Image, ImageDraw, ImageFont

from npumake.bundle.program import Program
from npumake.perf.layers import subgraphs_of

WIDTH, HEIGHT, GAP = 260, 40, 32  # of a box, and between boxes
UNIT, CPU, INK, PAPER = "#0e7c86", "#8a8f98", "#5b616b", "#ffffff"
LETTERS = 34  # that fit into a box
MAX_BOXES = 64  # boxes of a picture: 21 million pixels at most


@dataclass(frozen=True)
class Box:
    label: str
    on_unit: bool
    reads: frozenset[int]  # the numbers of other boxes


def boxes_of(program: Program, name: str) -> Mapping[int, Box]:
    """One per subgraph and per instruction of the CPU, by number."""
    numbers, boxes = subgraphs_of(program), dict[int, Box]()
    makers: dict[str, int] = {}  # a box by its output so far

    def number(index: int) -> int:
        """The number of an instruction's box: a subgraph's is negative."""
        return -1 - numbers[index] if index in numbers else index

    for index, step in enumerate(program.instructions):
        if step.op == "constant":
            continue
        own, on_unit = number(index), index in numbers
        read = {makers[name] for name in step.inputs if name in makers} - {own}
        makers |= dict.fromkeys(step.outputs, own)
        before = boxes[own].reads if own in boxes else frozenset()
        label = f"{name}_subgraph_{numbers[index]}" if on_unit else f"{step.name} ({step.op})"
        boxes[own] = Box(label, on_unit, before | read)
    return boxes


def levels_of(boxes: Mapping[int, Box]) -> Mapping[int, int]:
    """The row of each box: one below the lowest box that it depends on."""
    levels: dict[int, int] = {}
    graph = {number: [n for n in sorted(box.reads) if n in boxes] for number, box in boxes.items()}
    for number in TopologicalSorter(graph).static_order():
        levels[number] = 1 + max((levels[n] for n in graph[number]), default=-1)
    return levels


def picture(program: Program, name: str, caption: str = "") -> bytes:
    """The PNG, deterministic. At most MAX_BOXES boxes are drawn, with `caption` below."""
    boxes = dict(list(boxes_of(program, name).items())[:MAX_BOXES])
    places = _places(boxes)
    width = max((x for x, _ in places.values()), default=0) + WIDTH + GAP
    height = max((y for _, y in places.values()), default=0) + HEIGHT + 2 * GAP
    image = Image.new("RGB", (width, height), PAPER)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(13)
    for number, box in boxes.items():
        for read in sorted(box.reads & places.keys()):
            (x, y), (u, v) = places[read], places[number]
            draw.line([(x + WIDTH // 2, y + HEIGHT), (u + WIDTH // 2, v)], fill=INK, width=2)
    for number, box in boxes.items():
        x, y = places[number]
        color = UNIT if box.on_unit else CPU
        draw.rounded_rectangle((x, y, x + WIDTH, y + HEIGHT), 6, fill=color)
        middle = (x + WIDTH // 2, y + HEIGHT // 2)
        draw.text(middle, _short(box.label), fill=PAPER, font=font, anchor="mm")
    draw.text((GAP, height - GAP), caption, fill=INK, font=font, anchor="lm")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _places(boxes: Mapping[int, Box]) -> Mapping[int, tuple[int, int]]:
    """The upper left corner of each box, in pixels."""
    levels, counts = levels_of(boxes), Counter[int]()
    places: dict[int, tuple[int, int]] = {}
    for number in boxes:
        row = levels[number]
        places[number] = (GAP + counts[row] * (WIDTH + GAP), GAP + row * (HEIGHT + GAP))
        counts[row] += 1
    return places


def _short(label: str) -> str:
    return label if len(label) <= LETTERS else "..." + label[3 - LETTERS :]
