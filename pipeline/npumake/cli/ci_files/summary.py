"""The summary of a pull request in Markdown: the figures of each model and target, with the
difference to the base branch; hits and misses of the cache; failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from npumake.cli.ci_files.results import BUILT, FAILED, HITS, NOT_RUN, ReportedNode
from npumake.cli.show import BUG, error_text
from npumake.cli.terminal import printable
from npumake.report.model_figures import ModelFigures

NO_VALUE = "--"
EQUAL = "="
MAX_FAILURES = 20


@dataclass(frozen=True)
class ModelRow:
    """One model on one target. `state` is its change since the base: there is no base, the base has
    no such target, or this change removes it. `is_stored`: the cache has the base's artifacts.
    `after` is None if it was not built."""

    model: str
    target: str
    after: ModelFigures | None
    before: ModelFigures | None = None
    state: Literal["", "new", "removed"] = ""
    is_stored: bool = True


@dataclass(frozen=True)
class Summary:
    """`base` names the commit, empty without one; `saved_s` are recorded seconds of the hits."""

    rows: Sequence[ModelRow]
    results: Sequence[ReportedNode]
    saved_s: float
    base: str = ""
    untouched: int = 0
    notes: Sequence[str] = ()


class SummaryColumn(NamedTuple):
    """`better` is the sign of a difference that is an improvement, 0 if none is."""

    head: str
    figure: Callable[[ModelFigures], float | None]
    text: Callable[[ModelFigures], str]
    difference: Callable[[float, float], str]
    better: int


def _absolute(digits: str) -> Callable[[float, float], str]:
    return lambda before, after: _signed(after - before, digits)


def _latency(figures: ModelFigures) -> str:
    bound = "compute bound only: " if figures.is_bound else ""
    return f"{bound}{figures.latency_ms:.4g} ms"


def _relative(before: float, after: float) -> str:
    return f"{_signed(100 * (after / before - 1), '.2f')} %" if before else _signed(after, ".4g")


def _signed(value: float, digits: str) -> str:
    """With a sign; a difference too small for these digits is written with one."""
    text = f"{abs(value):{digits}}"
    if float(text) == 0:
        text = f"{abs(value):.1g}"
    return f"{'-' if value < 0 else '+'}{text}"


COLUMNS = (
    SummaryColumn(
        "accuracy",
        lambda figures: figures.accuracy,
        lambda figures: f"{figures.accuracy:.5g} {_code(figures.metric)}",
        _absolute(".3g"),
        better=1,
    ),
    SummaryColumn(
        "cosine",
        lambda figures: figures.cosine,
        lambda figures: f"{figures.cosine:.6f}",
        _absolute(".6f"),
        better=1,
    ),
    SummaryColumn(
        "size",
        lambda figures: figures.size,
        lambda figures: f"{figures.size:,} B",
        _relative,
        better=-1,
    ),
    SummaryColumn(
        "latency",
        lambda figures: figures.latency_ms,
        _latency,
        _relative,
        better=-1,
    ),
    SummaryColumn(
        "CPU nodes",
        lambda figures: figures.cpu_nodes,
        lambda figures: f"{figures.cpu_nodes}",
        _absolute(".0f"),
        better=-1,
    ),
    SummaryColumn(
        "int16",
        lambda figures: figures.int16,
        lambda figures: f"{figures.int16:.1%}",
        lambda before, after: f"{_signed(100 * (after - before), '.1f')} points",
        better=-1,
    ),
)


def summary_text(summary: Summary) -> str:
    """The Markdown; a difference for the worse is bold."""
    lines = [f"## npumake: {_verdict(summary)}", ""]
    if summary.rows:
        heads = ("model", "target", *(column.head for column in COLUMNS))
        lines += [_line(heads), _line(("---", "---", *["---:"] * len(COLUMNS)))]
        lines += [*map(_row, summary.rows), ""]
    lines += [*_failures(summary.results), _cache(summary), ""]
    lines += [f"- {_escaped(note)}" for note in _notes(summary)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _verdict(summary: Summary) -> str:
    statuses = [result.status for result in summary.results]
    failed = statuses.count(FAILED)
    if failed:
        waiting = statuses.count(NOT_RUN)
        return f"{failed} failed" + (f", {waiting} not run" if waiting else "")
    models = len({row.model for row in summary.rows if row.after})
    return f"{_counted(models, 'model')} built" if models else "nothing to build"


def _row(row: ModelRow) -> str:
    model = f"{_code(row.model)} {row.state}".rstrip()
    return _line((model, _code(row.target), *(_cell(column, row) for column in COLUMNS)))


def _cell(column: SummaryColumn, row: ModelRow) -> str:
    """The figure now and its difference to the base."""
    figure = row.before if row.after is None and row.state == "removed" else row.after
    now = None if figure is None else column.figure(figure)
    if figure is None or now is None:
        return NO_VALUE
    text = column.text(figure) if not math.isnan(now) else "NaN"
    then = None if row.before is None or row.after is None else column.figure(row.before)
    if then is None or row.before is None or not _comparable(column, row.before, figure):
        return text
    return f"{text} ({_difference(column, then, now)})"


def _comparable(column: SummaryColumn, before: ModelFigures, after: ModelFigures) -> bool:
    """Accuracies of one metric, and latencies that are both bounds or both estimates."""
    if column.head == "accuracy":
        return before.metric == after.metric
    return column.head != "latency" or before.is_bound == after.is_bound


def _difference(column: SummaryColumn, before: float, after: float) -> str:
    if before == after or (math.isnan(before) and math.isnan(after)):
        return EQUAL
    if math.isnan(before) or math.isnan(after):
        return f"**was {before:.6g}**"
    text = column.difference(before, after)
    return f"**{text}**" if (after - before) * column.better < 0 else text


def _failures(results: Sequence[ReportedNode]) -> Iterator[str]:
    """Each failed node with its error, as the console shows it."""
    failed = [result for result in results if result.status == FAILED]
    for result in failed[:MAX_FAILURES]:
        text = BUG if result.error is None else error_text(result.error)
        quoted = text.replace("```", "'''").splitlines()
        yield from (f"{_code(result.name)} failed:", "", "```text", *quoted, "```", "")
    if len(failed) > MAX_FAILURES:
        yield from (f"and {len(failed) - MAX_FAILURES} more", "")


def _cache(summary: Summary) -> str:
    statuses = [result.status for result in summary.results]
    hits = sum(statuses.count(status) for status in HITS)
    misses = statuses.count(BUILT)
    parts = f"{_counted(hits, 'hit')}, {_counted(misses, 'miss', 'misses')}"
    return f"Cache: {parts}, {summary.saved_s:.1f} s saved."


def _notes(summary: Summary) -> Iterator[str]:
    if summary.base:
        yield f"Compared with {summary.base}."
    missing = sum(not row.is_stored for row in summary.rows)
    if missing:
        rows = _counted(missing, "row")
        yield f"The cache lacks the base's artifacts of {rows}: only sizes are compared there."
    if summary.untouched:
        yield f"{_counted(summary.untouched, 'project')} untouched."
    yield from summary.notes


def _counted(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    """A name as code: its markup has no effect, and `digits@kl` mentions no user."""
    name = printable(text, allowed="").replace("`", "'").replace("|", r"\|")
    return f"`{name}`"


def _escaped(text: str) -> str:
    """A sentence whose markup does not count; its own quotes stay code."""
    parts = printable(text, allowed="").split("`")
    if len(parts) % 2 == 0:  # a quote without its end
        return _code(text)
    return "".join(_code(part) if index % 2 else _plain(part) for index, part in enumerate(parts))


def _plain(text: str) -> str:
    return "".join(f"&#{ord(c)};" if c in "<>&|*_[]@#~\\!" else c for c in text)
