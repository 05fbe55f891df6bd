"""npumake precision: find the nodes that need more than 8 bits, and write them to the project

It promotes single nodes to measure the gain of each, then the fewest that reach the goal. The cache
stores every trial, so an interrupted run continues. The result goes to quantization.yaml if the
project has one target and no such section elsewhere; else it is printed for you to paste.

example:
  npumake precision digits:rdk-x5 --cosine 0.9995
  npumake precision digits:rdk-x5 --metric top1 --max-drop 0.5
  npumake precision digits@p999:ara240 --agreement 0.99 --most-nodes 3 --dry-run
  npumake precision faces --cosine 0.999 --executor dask -n 4
  npumake precision faces --cosine 0.999 --most-operations 0.2 --to cpu --json

exit code 6: no choice within the limits reaches the goal
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from npumake import digest
from npumake.cache.publish import replacing
from npumake.cli.build import executor_arguments, executor_of
from npumake.cli.precision_target import PrecisionTarget, bring_up, objective_of, place_of
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.digest import Json
from npumake.errors import GateError
from npumake.make.node import Node
from npumake.progress import listening

if TYPE_CHECKING:
    from npumake.make.trials import Trials
    from npumake.project.sections import Quantization
    from npumake.quant.search.objective import Choice, Objective, PromotionResult

HEADER = "# npumake precision"  # marks a file that we may replace
FILE = "quantization.yaml"
MAX_NAMES = 4  # in a row of the table; --json has them all


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="PROJECT[@VARIANT][:TARGET]")
    metric = parser.add_mutually_exclusive_group(required=True)
    metric.add_argument("--cosine", type=_share, metavar="C", help="of the worst output")
    metric.add_argument("--agreement", type=_share, metavar="A", help="top-1 with the float model")
    metric.add_argument("--metric", metavar="M", help="a figure of the project's evaluation")
    parser.add_argument(
        "--max-drop", type=_points, metavar="D", help="of --metric; by default that of `gates`"
    )
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--most-nodes", type=_count, metavar="N", help="promote no more")
    limits.add_argument("--most-operations", type=_share, metavar="S", help="no larger a share")
    choices = ("int16", "float16", "cpu")
    parser.add_argument("--to", choices=choices, default="int16", help="default int16")
    parser.add_argument("-n", type=int, default=0, metavar="N", help="processes of a cluster here")
    executor_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the YAML, write nothing")
    parser.add_argument("--json", action="store_true", help="for machines; writes nothing either")
    wide_argument(parser)
    format_argument(parser)


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError("between 0 and 1")
    return value


def _points(text: str) -> float:
    value = float(text)
    if not value >= 0.0:
        raise argparse.ArgumentTypeError("0 or more")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("0 or more")
    return value


def run(arguments: argparse.Namespace) -> int:
    from npumake.make.trials import Trials
    from npumake.quant.search.objective import choose_promotions

    place = place_of(arguments.model, arguments.metric)
    bring_up(place.build, _needed(place), quiet=arguments.json)
    objective = objective_of(arguments, place)
    model = place.build, place.calibrated, place.comparison
    console = sys.stderr if arguments.json else sys.stdout  # for notes meanwhile
    entries = [(arguments.model, place.build)]
    with redirect_stdout(console), executor_of(arguments, entries) as executor:
        trials = Trials(*model, arguments.to, place.task, executor)
        try:
            SCREEN.begin("precision")
            with listening(SCREEN.progress):
                result = choose_promotions(trials, objective)
        finally:
            SCREEN.end()
            place.build.memory.save()
    _tell(arguments, place, trials, objective, result)
    return 0


def _tell(
    arguments: argparse.Namespace,
    place: PrecisionTarget,
    trials: Trials,
    objective: Objective,
    result: PromotionResult,
) -> None:
    """Prints and writes the result. Raises GateError if no choice suffices."""
    chosen, name = result.chosen, arguments.metric or objective.metric
    threshold = round(objective.goal, 6)
    quantization = trials.quantization_with(chosen.names)
    if arguments.json:
        print(digest.text(_document(trials, result, quantization), indent=1))
    else:
        title = f"{arguments.model}: to {trials.to} for {name} {threshold}"
        by = "the evaluation" if place.task else "the held-out samples"
        _print_front(f"{title}, by {by}", trials, result)
        print(f"{trials.measured + trials.recalled} trials, {trials.recalled} of them known before")
    if not result.suffices:
        reached = getattr(chosen.score, objective.metric)
        message = f"no promotion to {trials.to} within the limits reaches {name} {threshold}"
        advice = "; weights stay int8: try --to cpu" if trials.to == "int16" else ""
        raise GateError(message, arguments.model, f"the best tried has {reached:.6f}{advice}")
    if arguments.json:
        return
    if not chosen.names:
        print(f"{name} {getattr(chosen.score, objective.metric):.6f}: nothing to promote")
    elif arguments.dry_run or (why := _why_not_written(place)):
        print("" if arguments.dry_run else f"not written: {why}; paste it")
        print(_pasted(place, quantization), end="")
    else:
        _write(place, quantization, f"{arguments.model} {_question(arguments)}")


def _question(arguments: argparse.Namespace) -> str:
    """The goal, as command-line options."""
    drop = "" if arguments.max_drop is None else f" --max-drop {arguments.max_drop:g}"
    options = {
        "cosine": arguments.cosine,
        "agreement": arguments.agreement,
        "metric": arguments.metric,
    }
    return next(f"--{key} {value}" for key, value in options.items() if value is not None) + drop


def _needed(place: PrecisionTarget) -> set[str]:
    """The nodes that the trials need."""
    task = {place.task.score.name} if place.task else set()
    return {*place.calibrated.inputs.values(), place.comparison.inputs["samples"], *task}


def _print_front(title: str, trials: Trials, result: PromotionResult) -> None:
    from npumake.cli.columns import Column, Line, draw_table

    at_task = result.chosen.score.metric is not None
    heads = ("Nodes", "Operations", "int16", "Cosine", "Agreement", *(["Metric"] * at_task))
    columns = [*(Column(head, "figure") for head in heads), Column("Promoted", "prose")]
    lines = []
    for choice in result.front:
        cells = (
            str(len(choice.names)),
            f"{choice.operations:.1%}",
            f"{trials.int16_share(choice.names):.1%}",
            f"{choice.score.cosine:.6f}",
            f"{choice.score.agreement:.2%}",
            *(() if choice.score.metric is None else (f"{choice.score.metric:.6g}",)),
            _listed(choice.names),
        )
        is_best = choice == result.chosen and result.suffices
        lines.append(Line(cells, "bold green" if is_best else None))
    SCREEN.table(draw_table(columns, lines, SCREEN.width, title))


def _listed(names: tuple[str, ...]) -> str:
    suffix = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + suffix


def _document(trials: Trials, result: PromotionResult, quantization: Quantization) -> Json:
    from npumake.quant.precision.precision_candidates import section

    def row(choice: Choice) -> Json:
        return {
            "promoted": list(choice.names),
            "operations": choice.operations,
            "int16": trials.int16_share(choice.names),
            "cosine": choice.score.cosine,
            "agreement": choice.score.agreement,
            **({} if choice.score.metric is None else {"metric": choice.score.metric}),
        }

    return {
        "suffices": result.suffices,
        "chosen": row(result.chosen),
        "front": [row(choice) for choice in result.front],
        "trials": {"measured": trials.measured, "known": trials.recalled},
        "quantization": section(quantization),
    }


def _pasted(place: PrecisionTarget, quantization: Quantization) -> str:
    """The section for project.yaml, below its target if there are several."""
    from npumake.quant.precision.precision_candidates import section

    document = {"quantization": section(quantization)}
    return _yaml(document if place.is_alone else {"targets": [{place.calibrated.target: document}]})


def _yaml(document: Json) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _why_not_written(place: PrecisionTarget) -> str:
    """Why quantization.yaml must not be written; empty if it may."""
    if not place.is_alone:
        return f"`{FILE}` would apply to every target and variant"
    elsewhere = [file for file in _files(place.calibrated) if file != FILE]
    if elsewhere:
        return f"the section is in {elsewhere[0]}"
    path = place.build.directory / FILE
    if path.is_file() and not path.read_text(encoding="utf-8", errors="replace").startswith(HEADER):
        return f"{FILE} was not written by npumake"
    return ""


def _files(node: Node) -> Iterator[str]:
    """The files that define keys of the section."""
    for key, spot in node.places.items():
        if key.partition(".")[0] == "quantization":
            yield spot.rsplit(":", 2)[0]


def _write(place: PrecisionTarget, quantization: Quantization, question: str) -> None:
    from npumake.quant.precision.precision_candidates import section

    path = place.build.directory / FILE
    with replacing(path) as temporary:
        temporary.write_text(
            f"{HEADER} {question}\n{_yaml(section(quantization))}", encoding="utf-8"
        )
    print(f"{path.name} written; doit builds it")
