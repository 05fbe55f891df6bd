"""npumake hb_mapper: the vendor's command for RDK X3, X5 and Ultra, with the same YAML

example:
  npumake hb_mapper checker --model-type onnx --march bayes-e --model resnet50.onnx
  npumake hb_mapper makertbin --model-type onnx -c resnet50_config.yaml
  npumake hb_mapper makertbin --model-type onnx --fast-perf --model resnet50.onnx --march bayes-e

Only the vendor's tool writes the .bin that a board loads. A .hybrid holds the same integers for
accuracy and CI.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npumake.errors import ProjectError

LOGS = {name: Path(f"hb_mapper_{name}.log") for name in ("checker", "makertbin")}
TYPES = ("onnx", "caffe")
DEBUG = "model_parameters.debug_mode"
NO_BIN = "A board loads a .bin, written by the vendor's hb_mapper. {prefix}.hybrid is not one."


def arguments(parser: argparse.ArgumentParser) -> None:
    from npumake.cli.vendors.project import allow_argument, shape_argument

    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checker = commands.add_parser("checker", help="show the unit of each node")
    makertbin = commands.add_parser("makertbin", help="quantize and compile a model")
    for command in (checker, makertbin):
        command.add_argument("--model-type", choices=TYPES, required=True)
        command.add_argument("--march", help="bernoulli2, bayes-e or bayes")
        command.add_argument("--proto", metavar="FILE", help="of a Caffe model")
        command.add_argument("--model", metavar="FILE", help="the float model")
        shape_argument(command, "--input-shape")
    checker.add_argument("--output", help=argparse.SUPPRESS)  # deprecated, without effect
    makertbin.add_argument("-c", "--config", type=Path, metavar="YAML")
    allow_argument(makertbin)
    makertbin.add_argument(
        "--fast-perf", action="store_true", help="optimize for speed only; calibrate on noise"
    )


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.vendors.log import logging_run

    with logging_run(LOGS[arguments.command], "hb_mapper", arguments.command):
        return _check(arguments) if arguments.command == "checker" else _makertbin(arguments)


def _makertbin(arguments: argparse.Namespace) -> int:
    from npumake.cli.vendors.log import append_log

    append_log(LOGS["makertbin"], "Start Model Convert....")
    if arguments.fast_perf and arguments.config:
        raise ProjectError("`--fast-perf` takes no YAML", "--config", "keep only one of both")
    if arguments.fast_perf:
        return _convert_fast(arguments)
    if arguments.config is None:
        raise ProjectError("no YAML", "--config", "give -c YAML, or --fast-perf and --model")
    return _convert(arguments)


def _check(arguments: argparse.Namespace) -> int:
    from npumake.cli.vendors.command import HB_MAPPER, check
    from npumake.cli.vendors.log import append_log
    from npumake.dialects.drobotics.keys import MARCHES

    log = LOGS["checker"]
    append_log(log, "Begin model checking....")
    code = check(arguments, MARCHES, Path(".hb_check/model"), log, HB_MAPPER)
    append_log(log, "End model checking....")
    return code


def _convert(arguments: argparse.Namespace) -> int:
    """Builds a project in this dialect in `<working_dir>/<prefix>`."""
    from npumake.cli.vendors.log import append_log, worded_as
    from npumake.cli.vendors.vendor_file import read_vendor_file
    from npumake.dialects.drobotics.dialect import HB_MAPPER
    from npumake.dialects.drobotics.keys import KEYS
    from npumake.dialects.openexplorer.translation import refuse_missing_model

    file = read_vendor_file(arguments.config, HB_MAPPER, KEYS)
    refuse_missing_model(file.vendor, arguments.model_type)
    append_log(LOGS["makertbin"], *file.write_project("hb_mapper", arguments.allow))
    with worded_as(arguments.config, file.folder):
        return _build(file.folder, file.working, file.prefix, bool(file.vendor.text(DEBUG)))


def _convert_fast(arguments: argparse.Namespace) -> int:
    from npumake.cli.vendors.fast_perf import fast_project
    from npumake.cli.vendors.project import write_project
    from npumake.dialects.drobotics.keys import MARCHES

    working, prefix = Path("model_output"), Path(arguments.model or "model").stem
    folder = working / prefix
    write_project(folder, fast_project(arguments, folder, MARCHES, "O3"))
    return _build(folder, working, prefix)


def _build(folder: Path, working: Path, prefix: str, dumps: bool = False) -> int:
    from npumake.cli.vendors.command import HB_MAPPER, Product, build_product
    from npumake.cli.vendors.stage_files import dump_calibration, mapper_form

    product = Product(HB_MAPPER, working, prefix, NO_BIN, LOGS["makertbin"], form=mapper_form)
    project_build = build_product(folder, product)
    if dumps:
        dump_calibration(project_build, working)
    return 0
