"""The page of a workspace: its projects, targets and variants side by side, and over time.

It is static HTML without scripts. Every name is untrusted and escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from npumake.report.assets import asset
from npumake.report.markup import text_of
from npumake.report.trend import TrendLine, trend

NO_FIGURE = "--"
MINUTES = len("2026-01-31 23:59")  # of a time that is shown
MAX_CHANGES = 4  # of an earlier build, in its row
COLORS = 8  # of lines in a chart, in workspace.css


@dataclass(frozen=True)
class PastFigures:
    """What one build of a target came to; None where it was not measured.

    `cosine` and `compiled_cosine` are those of the worst output, `size` is in bytes. `scores` are
    (artifact, metric, value), float first; `gates` (met, all). `changes` says what differs from the
    build of today, one line each.
    """

    when: str  # ISO 8601, UTC
    cosine: float | None
    compiled_cosine: float | None
    size: int | None
    scores: tuple[tuple[str, str, float], ...] = ()
    gates: tuple[int, int] | None = None
    weakest: tuple[str, float] | None = None  # the node with the lowest cosine
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildRow:
    """A build of today: `past` has its figures over time, the last is that of today where it is
    `is_built`."""

    project: str
    variant: str  # empty for the project itself
    target: str
    status: str  # current, cached, would run
    is_built: bool
    past: tuple[PastFigures, ...]

    @property
    def name(self) -> str:
        return f"{self.project}@{self.variant}" if self.variant else self.project

    @property
    def now(self) -> PastFigures | None:
        return self.past[-1] if self.is_built else None


@dataclass(frozen=True)
class WorkspaceFigures:
    """`pages` are the addresses of the projects' own reports; `errors` say by project why there is
    no build."""

    name: str
    rows: tuple[BuildRow, ...]
    pages: Mapping[str, str]
    errors: Mapping[str, str]


def workspace_page(workspace: WorkspaceFigures) -> str:
    """The page; the same figures give the same bytes."""
    projects = list(dict.fromkeys(row.project for row in workspace.rows))
    parts = {
        "TITLE": text_of(f"{workspace.name}: report"),
        "STYLE": asset("page.css") + asset("workspace.css"),
        "VERDICT": _verdict(workspace),
        "BUILDS": _builds(workspace),
        "TARGETS": _targets(workspace.rows),
        "TIME": "\n".join(_over_time(project, workspace) for project in projects),
    }
    head, *rest = asset("workspace.html").split("<!--")
    pieces = [head]
    for piece in rest:
        name, _, text = piece.partition("-->")
        pieces += [parts[name], text]
    return "".join(pieces)


def _verdict(workspace: WorkspaceFigures) -> str:
    gates = [row.now.gates for row in workspace.rows if row.now and row.now.gates]
    failing = sum(passed < count for passed, count in gates)
    builds = _count(len(workspace.rows), "build")
    if not gates:
        verdict = f"<p class='verdict'>{builds}. No project defines gates.</p>"
    elif failing:
        verdict = (
            f"<p class='verdict unmet'>{failing} of {_count(len(gates), 'build')} with gates "
            "fail them.</p>"
        )
    else:
        verdict = f"<p class='verdict met'>All gates are met in {_count(len(gates), 'build')}.</p>"
    errors = [
        f"<li><b>{text_of(name)}</b>: <span class='unmet'>{text_of(error)}</span></li>"
        for name, error in sorted(workspace.errors.items())
    ]
    return verdict + (f"<ul class='failing'>{''.join(errors)}</ul>" if errors else "")


def _builds(workspace: WorkspaceFigures) -> str:
    heads = ["Build", "Target", "Cosine", "Compiled cosine", "Scores", "Gates", "Compiled"]
    rows = []
    for row in workspace.rows:
        now = row.now or PastFigures("", None, None, None)
        page = workspace.pages.get(row.project)
        name = _link(page, f"{row.name}:{row.target}", "", row.name) if page else text_of(row.name)
        weakest = _weakest(row, now, page)
        rows.append(
            [
                name,
                text_of(row.target),
                _cosine(now.cosine),
                _cosine(now.compiled_cosine),
                text_of(_scores(now)),
                _gates(now),
                _size(now.size),
                weakest,
                text_of(row.status),
            ]
        )
    return _table([*heads, "Weakest node", "State"], rows, "builds", numbers=(2, 3, 6))


def _weakest(row: BuildRow, now: PastFigures, page: str | None) -> str:
    if now.weakest is None:
        return NO_FIGURE
    node, cosine = now.weakest
    link = _link(page, f"{row.name}:{row.target}", node, node) if page else text_of(node)
    return f"{link} {_cosine(cosine)}"


def _link(page: str, build: str, node: str, text: str) -> str:
    named = {"build": build, **({"node": node} if node else {})}
    address = html.escape(f"{quote(page)}#{urlencode(named)}")
    return f'<a href="{address}">{text_of(text)}</a>'


def _targets(rows: Sequence[BuildRow]) -> str:
    """The worst cosine by project and target: of the compiled file, else of the quantized model."""
    targets = list(dict.fromkeys(row.target for row in rows))
    names = list(dict.fromkeys(row.name for row in rows))
    by_place = {(row.name, row.target): row.now for row in rows}
    lines = []
    for name in names:
        cells = [text_of(name)]
        for target in targets:
            now = by_place.get((name, target))
            cosine = None if now is None else _closest(now)
            cells.append(_cosine(cosine))
        lines.append(cells)
    return _table(["Build", *map(text_of, targets)], lines, "targets", range(1, len(targets) + 1))


def _closest(figures: PastFigures) -> float | None:
    return figures.cosine if figures.compiled_cosine is None else figures.compiled_cosine


def _over_time(project: str, workspace: WorkspaceFigures) -> str:
    rows = [row for row in workspace.rows if row.project == project and row.past]
    title = f"<h3>{text_of(project)}</h3>"
    if not rows:
        return f"{title}<p class='why'>Not built yet.</p>"
    lines = [_line(row) for row in rows]
    legend = "".join(
        f'<span><i class="c{index % COLORS}"></i>{text_of(line.name)}</span>'
        for index, line in enumerate(lines)
    )
    times = sorted(past.when[:MINUTES] for row in rows for past in row.past)
    chart = trend(lines, (times[0], times[-1]), "cosine of the worst output")
    key = f'<p class="legend">{legend}</p>' if chart else ""
    return f"{title}{key}{chart}{_past(rows)}"


def _line(row: BuildRow) -> TrendLine:
    points = ((past.when, _closest(past)) for past in row.past)
    return TrendLine(
        f"{row.name}:{row.target}",
        tuple((value, f"{when}: {value:.6f}") for when, value in points if value is not None),
    )


def _past(rows: Iterable[BuildRow]) -> str:
    """Every build of a project, the last one first."""
    builds = sorted(
        ((past.when, row.name, row.target, row, past) for row in rows for past in row.past),
        key=lambda build: build[:3],
        reverse=True,
    )
    lines = [
        [
            f"{text_of(name)}:{text_of(target)}",
            text_of(when[:MINUTES]),
            _cosine(past.cosine),
            _cosine(past.compiled_cosine),
            text_of(_scores(past)),
            _size(past.size),
            "today's build" if past is row.now else _changes(past.changes),
        ]
        for when, name, target, row, past in builds
    ]
    heads = ["Build", "Time (UTC)", "Cosine", "Compiled cosine", "Scores", "Compiled"]
    return _table([*heads, "Differs from today in"], lines, "earlier builds", numbers=(2, 3, 5))


def _changes(changes: Sequence[str]) -> str:
    if not changes:
        return "nothing: npumake itself changed"
    lines = "<br>".join(map(text_of, changes[:MAX_CHANGES]))
    hidden = len(changes) - MAX_CHANGES
    return lines + (f"<br>and {hidden} more" if hidden > 0 else "")


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], name: str, numbers: Iterable[int] = ()
) -> str:
    """`rows` are markup. A column without any figure is left out."""
    kinds = [" class=number" if index in {*numbers} else "" for index in range(len(heads))]
    columns = [i for i in range(len(heads)) if not i or any(row[i] != NO_FIGURE for row in rows)]
    head = "".join(f'<th scope="col"{kinds[i]}>{heads[i]}</th>' for i in columns)
    body = "".join(
        f"<tr>{''.join(_cell(heads[i], kinds[i], row[i]) for i in columns)}</tr>\n" for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table><thead><tr>'
        f"{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
    )


def _cell(head: str, kind: str, cell: str) -> str:
    return f'<td data-label="{head}"{kind}><span>{cell}</span></td>'


def _cosine(value: float | None) -> str:
    return NO_FIGURE if value is None else f"{value:.6f}"


def _scores(figures: PastFigures) -> str:
    """`top1 float 97.5, quantized 96`."""
    by_metric: dict[str, list[str]] = {}
    for artifact, metric, value in figures.scores:
        by_metric.setdefault(metric, []).append(f"{artifact} {value:.4g}")
    return "; ".join(f"{m} {', '.join(v)}" for m, v in by_metric.items()) or NO_FIGURE


def _gates(figures: PastFigures) -> str:
    if figures.gates is None:
        return NO_FIGURE
    passed, count = figures.gates
    kind = "met" if passed == count else "unmet"
    return f'<span class="{kind}">{passed} of {count} met</span>'


def _size(size: int | None) -> str:
    return NO_FIGURE if size is None else f"{size / 1e3:,.1f} kB"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
