"""The build of a project as a drawing: its nodes with their states, as SVG and as a tree.

Edges that a longer path implies are left out (transitive reduction): `compiled` depends on
`calibrated` through `quantized`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from npumake.report.layout import GraphDrawing, laid_out
from npumake.report.markup import text_of

BOX_WIDTH, BOX_HEIGHT = 184, 40  # in pixels, as all below
COLUMN, LAYER, MARGIN, TITLE_HEIGHT = 200, 70, 16, 30
MAX_CHARACTERS = 27  # of a line in a box
# By state the class that STYLE colours; `made` is that of a page, where everything is current.
CLASSES: Mapping[str, str] = {
    "current": "current",
    "made": "current",
    "cached": "cached",
    "would run": "waiting",
    "failed": "failed",
}
# (ink, line, paper) and the colours of boxes; no CSS variables: converters of SVG lack them.
_LIGHT = ("#1c2430", "#8a94a0", "#ffffff")
_DARK = ("#e6e9ee", "#7d8794", "#12161c")
_LIGHT_BOXES = {
    "current": "#d8f0dd",
    "cached": "#d6ebf5",
    "waiting": "#fbe9c6",
    "failed": "#f8d3d0",
}
_DARK_BOXES = {"current": "#1d4429", "cached": "#1b3f52", "waiting": "#574118", "failed": "#602722"}


def _style(page: tuple[str, str, str], boxes: Mapping[str, str]) -> str:
    ink, line, paper = page
    rules = [f"text{{fill:{ink}}}", f"rect,.builds polyline{{stroke:{line}}}"]
    rules += [f".paper{{fill:{paper};stroke:none}}"]
    rules += [f".{name}{{fill:{color}}}" for name, color in boxes.items()]
    return "".join(f".builds {rule}" for rule in rules)


# It follows the reader's scheme, in a file of its own as in a page.
STYLE = (
    f"{_style(_LIGHT, _LIGHT_BOXES)}"
    f"@media screen and (prefers-color-scheme:dark){{{_style(_DARK, _DARK_BOXES)}}}"
)


@dataclass(frozen=True)
class BuildNode:
    """A node of a build. `note` is a short text for its box, `details` the lines of its tooltip;
    `inputs` are names of nodes."""

    name: str
    status: str
    note: str
    details: tuple[str, ...]
    inputs: tuple[str, ...]

    @property
    def short(self) -> str:
        """The name without the project: `rdk-x5/recipe`, `@kl:rdk-x5/recipe`."""
        group, _, short = self.name.partition(":")
        variant = group.partition("@")[2]
        return f"@{variant}:{short}" if variant else short


class TreeRow(NamedTuple):
    """A node in a tree. `below` is the indentation of further lines of the node; `others` are its
    inputs beside the one it hangs from."""

    indent: str
    below: str
    node: BuildNode
    others: tuple[str, ...]


def reduced(nodes: Sequence[BuildNode]) -> tuple[BuildNode, ...]:
    """The nodes, each behind its inputs, with the inputs that no other input implies."""
    by_name = {node.name: node for node in nodes}
    place = {name: index for index, name in enumerate(by_name)}
    above: dict[str, frozenset[str]] = {}
    ordered: list[BuildNode] = []
    for name in _ordered(by_name):
        node = by_name[name]
        inputs = sorted({*node.inputs} & {*by_name}, key=place.__getitem__)
        implied = frozenset().union(*(above[input_] for input_ in inputs))
        above[name] = implied | {*inputs}
        direct = tuple(input_ for input_ in inputs if input_ not in implied)
        ordered.append(BuildNode(name, node.status, node.note, node.details, direct))
    return tuple(ordered)


def _ordered(nodes: Mapping[str, BuildNode]) -> list[str]:
    """The names, each behind its inputs; otherwise in their order."""
    ordered: dict[str, None] = {}
    for name in nodes:
        waiting = [name]
        while waiting:
            missing = [
                input_
                for input_ in sorted(nodes[waiting[-1]].inputs)
                if input_ in nodes and input_ not in ordered and input_ not in waiting
            ]
            if missing:
                waiting.append(missing[0])
            else:
                ordered[waiting.pop()] = None
    return list(ordered)


def tree(nodes: Sequence[BuildNode]) -> Iterator[TreeRow]:
    """Every node once, below the last of its inputs."""
    ordered = reduced(nodes)
    place = {node.name: index for index, node in enumerate(ordered)}
    children: dict[str | None, list[BuildNode]] = {}
    for node in ordered:
        parent = max(node.inputs, key=place.__getitem__, default=None)
        children.setdefault(parent, []).append(node)
    waiting = [(node, "", "") for node in reversed(children.get(None, []))]
    while waiting:
        node, indent, below = waiting.pop()
        inner = children.get(node.name, [])
        others = sorted(node.inputs, key=place.__getitem__)[:-1]
        yield TreeRow(indent, below + ("│ " if inner else "  "), node, tuple(others))
        for index, child in enumerate(reversed(inner)):
            corner, bar = ("├ ", "│ ") if index else ("└ ", "  ")
            waiting.append((child, below + corner, below + bar))


def svg(projects: Mapping[str, Sequence[BuildNode]]) -> str:
    """The builds below each other. The same builds give the same bytes."""
    top, right = 0.0, 0.0
    parts: list[str] = []
    for project, nodes in projects.items():
        ordered = reduced(nodes)
        number = {node.name: index for index, node in enumerate(ordered)}
        edges = [(number[input_], number[node.name]) for node in ordered for input_ in node.inputs]
        drawing = laid_out(len(ordered), edges)
        layers = 1 + max((layer for _, layer in drawing.places), default=0)
        reach = max((x for x, _ in drawing.places), default=0.0)
        parts += [f'<g transform="translate({MARGIN},{top + MARGIN:g})">']
        parts += [f'<text y="14" font-size="15" font-weight="bold">{text_of(project)}</text>']
        parts += [*map(_edge, _lines(drawing)), *_boxes(ordered, drawing), "</g>"]
        top += TITLE_HEIGHT + layers * LAYER
        right = max(right, reach * COLUMN + BOX_WIDTH)
    width, height = f"{right + 2 * MARGIN:g}", f"{top + MARGIN:g}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" class="builds">'
    )
    paper = '<rect width="100%" height="100%" class="paper"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *parts, "</svg>\n"])


def _lines(drawing: GraphDrawing) -> Iterator[list[tuple[float, float]]]:
    """The points of each edge: out of a box at its bottom, into the next at its top."""
    for start, end, bends in drawing.edges:
        (x, layer), (end_x, end_layer) = drawing.places[start], drawing.places[end]
        middle = BOX_WIDTH / 2
        points = [(x * COLUMN + middle, TITLE_HEIGHT + layer * LAYER + BOX_HEIGHT)]
        for bend, row in bends:
            across, down = bend * COLUMN + middle, TITLE_HEIGHT + row * LAYER
            points += [(across, down), (across, down + BOX_HEIGHT)]
        yield [*points, (end_x * COLUMN + middle, TITLE_HEIGHT + end_layer * LAYER)]


def _edge(points: Sequence[tuple[float, float]]) -> str:
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke-width="1.5"/>'


def _boxes(nodes: Sequence[BuildNode], drawing: GraphDrawing) -> Iterator[str]:
    for node, (column, layer) in zip(nodes, drawing.places, strict=True):
        x, y = column * COLUMN, TITLE_HEIGHT + layer * LAYER
        details = "\n".join([f"{node.name}: {node.status}", *node.details])
        yield f'<g transform="translate({x:g},{y:g})"><title>{text_of(details)}</title>'
        yield (
            f'<rect width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" '
            f'class="{CLASSES[node.status]}"/>'
        )
        yield f'<text x="8" y="16" font-weight="bold">{text_of(_cut(node.short))}</text>'
        yield f'<text x="8" y="32">{text_of(_cut(node.note))}</text></g>'


def _cut(text: str) -> str:
    """The head of a long text and more of its tail, which tells nodes apart."""
    if len(text) <= MAX_CHARACTERS:
        return text
    head = MAX_CHARACTERS // 3
    return f"{text[:head]}…{text[head + 1 - MAX_CHARACTERS :]}"
