"""npumake debug: find the nodes that cause an error, and the vendors' debugging functions

blame ranks the nodes: first those whose scales do not fit their values, then the most sensitive.
inputs tries common normalizations of the samples and reports which gives a classifier the sharpest
outputs. The other functions have the names, parameters and results of the vendors' debuggers.

MODEL is PROJECT[@VARIANT][:TARGET] with its own samples, or a calibrated .onnx file with its
calibration data: a folder <input>/*.npy or a samples.npz. Lists are bracketed, [Conv_2,Conv_9], and
may be nested. The cache stores every probe, so an interrupted run continues.

example:
  npumake debug blame digits:rdk-x5
  npumake debug get-sensitivity-of-nodes digits:rdk-x5 -m [cosine-similarity,mse]
  npumake debug plot-acc-error calibrated.onnx calibration_data -q [weight,activation]
  npumake debug plot-distribution digits:rdk-x5 -n [stem_conv]
  npumake debug runall digits:rdk-x5 -s debug_result
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from npumake import digest
from npumake.cli.debug_tables import export_sensitivities
from npumake.cli.screen import SCREEN, format_argument, wide_argument
from npumake.errors import ProjectError
from npumake.progress import listening

if TYPE_CHECKING:
    from npumake.debug.sensitivity import ModelUnderTest
    from npumake.make.memory import BuildMemory

NAMES = ("cosine-similarity", "mse", "mre", "sqnr", "chebyshev")
TYPES = ("node", "weight", "activation")
LIST = "[A,B]"


class Flag(NamedTuple):
    names: tuple[str, ...]
    how: dict[str, Any]


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
        raise argparse.ArgumentTypeError("True or False")
    return text.lower() in ("true", "1", "yes")


def nested(text: str) -> Any:
    """`[a,[b,'c']]` as lists of text; a bare word as it is. Raises ArgumentTypeError."""
    import yaml

    try:
        names = yaml.load(text, yaml.BaseLoader) if text.startswith("[") else text
    except yaml.YAMLError as error:
        raise argparse.ArgumentTypeError("a list in brackets: [a,b]") from error
    if not _is_names(names):
        raise argparse.ArgumentTypeError("names, or lists of names: [a,b]")
    return names


def _is_names(value: Any, depth: int = 0) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, list) and depth < 2 and all(_is_names(x, depth + 1) for x in value)


TRUE = {"type": _bool, "nargs": "?", "const": True, "default": False, "metavar": "True|False"}
METRICS = {"type": nested, "default": "cosine-similarity", "metavar": LIST}
SAVE = Flag(("-s", "--save_dir"), {"type": Path, "default": Path("debug_result")})
OUTPUT = Flag(("-o", "--output_node"), {"metavar": "NODE", "help": "stop here"})
INTERESTED = Flag(("-i", "--interested_nodes"), {"type": nested, "metavar": LIST})
COUNT = {"type": int, "metavar": "N"}
TRUE_BY_DEFAULT = {**TRUE, "default": True}
NODES = Flag(("-n", "--nodes_list"), {"type": nested, "required": True, "metavar": LIST})
# function: its flags, with the vendors' names
FLAGS: dict[str, tuple[Flag, ...]] = {
    "blame": (
        Flag(("-d", "--data_num"), {**COUNT, "help": "samples to run; grids are checked on all"}),
        Flag(("--json",), {"action": "store_true", "help": "for machines"}),
    ),
    "inputs": (Flag(("--json",), {"action": "store_true", "help": "for machines"}),),
    "get-sensitivity-of-nodes": (
        Flag(("-m", "--metrics"), {**METRICS, "help": f"{', '.join(NAMES)}; the first sorts"}),
        OUTPUT,
        Flag(("-n", "--node_type"), {"choices": TYPES, "default": "node"}),
        Flag(("-d", "--data_num"), {**COUNT, "help": "samples; all unless"}),
        Flag(("-v", "--verbose"), {**TRUE_BY_DEFAULT, "help": "print the table (default)"}),
        INTERESTED,
        Flag(("--json",), {"action": "store_true", "help": "for machines"}),
    ),
    "plot-acc-error": (
        SAVE,
        Flag(("-q", "--quantize_node"), {"type": nested, "metavar": LIST}),
        Flag(("-nq", "--non_quantize_node"), {"type": nested, "metavar": LIST}),
        Flag(("-m", "--metric"), {"choices": NAMES, "default": NAMES[0]}),
        Flag(("-a", "--average_mode"), TRUE),
    ),
    "plot-distribution": (SAVE, NODES),
    "get-channelwise-data-distribution": (
        SAVE,
        NODES,
        Flag(("-a", "--axis"), {"type": int, "metavar": "AXIS"}),
    ),
    "runall": (
        SAVE,
        Flag(("-nm", "--ns_metrics"), METRICS),
        OUTPUT,
        Flag(("-nt", "--node_type"), {"choices": TYPES}),
        Flag(("-dn", "--data_num"), COUNT),
        Flag(("-v", "--verbose"), TRUE_BY_DEFAULT),
        INTERESTED,
        Flag(("-dnl", "--dis_nodes_list"), {"type": nested, "metavar": LIST}),
        Flag(("-cn", "--cw_nodes_list"), {"type": nested, "metavar": LIST}),
        Flag(("-a", "--axis"), {"type": int, "metavar": "AXIS"}),
        Flag(("-qn", "--quantize_node"), {"type": nested, "metavar": LIST}),
        Flag(("-nqn", "--non_quantize_node"), {"type": nested, "metavar": LIST}),
        Flag(("-am", "--ae_metric"), {"choices": NAMES, "default": NAMES[0]}),
        Flag(("-avm", "--average_mode"), TRUE),
    ),
}

WITH_TABLES = ("blame", "get-sensitivity-of-nodes", "runall")


def arguments(parser: argparse.ArgumentParser) -> None:
    functions = parser.add_subparsers(dest="function", required=True, metavar="FUNCTION")
    for name, flags in FLAGS.items():
        function = functions.add_parser(name, aliases=[name.replace("-", "_")])
        function.set_defaults(function=name)
        function.add_argument("model", metavar="MODEL")
        function.add_argument("data", metavar="CALIBRATION_DATA", nargs="?")
        function.add_argument("-j", "--jobs", type=int, metavar="N", help="probes at a time")
        for flag in flags:
            function.add_argument(*flag.names, **flag.how)
        if name in WITH_TABLES:
            wide_argument(function)
            format_argument(function)


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.debug_inputs import ways
    from npumake.make.memory import BuildMemory, cache_directory

    if arguments.function == "inputs":
        return ways(arguments)
    memory = BuildMemory(cache_directory(Path.cwd()))
    model = _of_file(arguments, memory) if _is_file(arguments.model) else _of_project(arguments)
    flag_names = {flag.names[-1].lstrip("-") for flag in FLAGS[arguments.function]} - {
        "json",
        "data_num",
    }
    parameters = {name: getattr(arguments, name) for name in flag_names}
    SCREEN.begin(arguments.function)
    try:
        with listening(SCREEN.progress):
            lines = FUNCTIONS[arguments.function](model, parameters, arguments)
    finally:
        SCREEN.end()
        memory.save()
    print(lines)
    return 0


def _blame(
    model: ModelUnderTest, _parameters: Mapping[str, Any], arguments: argparse.Namespace
) -> str:
    from npumake.cli.tables import suspects_table
    from npumake.debug.diagnosis.rank_causes import rank_causes

    causes = rank_causes(model)
    if arguments.json:
        return digest.text([cause._asdict() for cause in causes], indent=1)
    SCREEN.end()
    SCREEN.table(suspects_table(causes, SCREEN.width))
    return f"{len(causes)} nodes"


def _sensitivity(
    model: ModelUnderTest, parameters: Mapping[str, Any], arguments: argparse.Namespace
) -> str:
    from npumake.debug import get_sensitivity_of_nodes
    from npumake.debug.functions import sensitivity_text

    table = get_sensitivity_of_nodes(model, **{**parameters, "verbose": False})
    if arguments.json:
        return digest.text(table, indent=1)
    kind = "node" if arguments.interested_nodes is not None else arguments.node_type
    if SCREEN.is_export:
        export_sensitivities({kind: table})
        return f"{len(table)} nodes"
    text = sensitivity_text(kind, table, SCREEN.width)
    return text if arguments.verbose else f"{len(table)} nodes"


def _curves(
    model: ModelUnderTest, parameters: Mapping[str, Any], _arguments: argparse.Namespace
) -> str:
    from npumake.debug import plot_acc_error

    return f"wrote     {plot_acc_error(calibrated_data=None, model_or_file=model, **parameters)}"


def _distribution(
    model: ModelUnderTest, parameters: Mapping[str, Any], _arguments: argparse.Namespace
) -> str:
    from npumake.debug import plot_distribution

    plots = plot_distribution(calibrated_data=None, model_or_file=model, **parameters)
    return "\n".join(f"wrote     {path}" for path in plots)


def _channels(
    model: ModelUnderTest, parameters: Mapping[str, Any], _arguments: argparse.Namespace
) -> str:
    from npumake.debug import get_channelwise_data_distribution as plot

    plots = plot(calibrated_data=None, model_or_file=model, **parameters)
    return "\n".join(f"wrote     {path}" for path in plots)


def _all(
    model: ModelUnderTest, parameters: Mapping[str, Any], arguments: argparse.Namespace
) -> str:
    from npumake.debug import runall
    from npumake.debug.functions import sensitivity_text

    sensitivities = runall(model, None, **{**parameters, "verbose": False})
    if SCREEN.is_export:
        export_sensitivities(sensitivities)
        return f"wrote     {arguments.save_dir}"
    tables = [sensitivity_text(kind, table, SCREEN.width) for kind, table in sensitivities.items()]
    return "\n".join([*(tables if arguments.verbose else []), f"wrote     {arguments.save_dir}"])


FUNCTIONS: dict[str, Callable[[ModelUnderTest, Mapping[str, Any], argparse.Namespace], str]] = {
    "blame": _blame,
    "get-sensitivity-of-nodes": _sensitivity,
    "plot-acc-error": _curves,
    "plot-distribution": _distribution,
    "get-channelwise-data-distribution": _channels,
    "runall": _all,
}


def _is_file(model: str) -> bool:
    return model.endswith(".onnx")


def _of_file(arguments: argparse.Namespace, memory: BuildMemory) -> ModelUnderTest:
    """Raises ProjectError and GraphError."""
    from npumake.debug.functions import model_under_test

    if arguments.data is None:
        hint = f"npumake debug {arguments.function} {arguments.model} FOLDER"
        raise ProjectError("which calibration data?", arguments.model, hint)
    model = model_under_test(arguments.model, arguments.data, getattr(arguments, "data_num", None))
    return _remembering(model, memory, arguments.jobs)


def _of_project(arguments: argparse.Namespace) -> ModelUnderTest:
    """Its calibrated graph and its samples, built if needed. Raises PipelineError."""
    from npumake.cli.precision_target import bring_up, place_of
    from npumake.custom.operators import declared
    from npumake.data.samples import Samples
    from npumake.debug.debug_feeds import samples_for
    from npumake.debug.functions import model_under_test
    from npumake.debug.sensitivity import ModelUnderTest
    from npumake.graph import Graph

    place = place_of(arguments.model, None)
    build, node, samples = place.build, place.calibrated, place.comparison.inputs["samples"]
    bring_up(build, {node.name, samples}, quiet=getattr(arguments, "json", False))
    build.memory.save()
    graph = Graph.load(build.artifact(node))
    custom_operators = place.comparison.params["custom_operators"]
    operators = declared(custom_operators, build.sources(place.comparison))
    data = arguments.data or Samples.load(build.artifact(build.plan.node(samples)))
    model = ModelUnderTest(graph, samples_for(data, graph), operators)
    model = model_under_test(model, count=getattr(arguments, "data_num", None))
    return _remembering(model, build.memory, arguments.jobs)


def _remembering(model: ModelUnderTest, memory: BuildMemory, jobs: int | None) -> ModelUnderTest:
    from dataclasses import replace

    from npumake import digest
    from npumake.debug.debug_feeds import digest_of
    from npumake.make.probes import Probes

    inputs = {
        "calibrated": digest.of_bytes(model.calibrated.to_bytes()),
        "samples": digest_of(model.probed),
    }
    for name, data in model.operators.sources.items():
        inputs[f"operators/{name}"] = digest.of_bytes(data)
    return replace(model, cache=Probes(memory, inputs), at_once=jobs)
