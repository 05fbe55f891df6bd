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
from typing import TYPE_CHECKING

from npumake.errors import ProjectError

if TYPE_CHECKING:
    from npumake.dialects.vendor_yaml import VendorYaml

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
    from npumake.cli.vendors.log import append_log, config_text, worded_as
    from npumake.cli.vendors.project import (
        allowed_findings,
        copied_operators,
        relative_path,
        write_project,
    )
    from npumake.dialects.drobotics.dialect import translate
    from npumake.dialects.drobotics.keys import KEYS
    from npumake.dialects.drobotics.notes import notes
    from npumake.dialects.openexplorer.translation import refuse_missing_model
    from npumake.dialects.vendor_yaml import VendorYaml
    from npumake.project.vendor import lenient_config, repeat_notes

    document = lenient_config(arguments.config).document
    native = translate(document)  # its errors come before anything is written
    vendor = VendorYaml(document, KEYS)
    refuse_missing_model(vendor, arguments.model_type)
    working, prefix = _output(arguments.config, vendor)
    folder = working / prefix
    project = {"dialect": "hb_mapper", "config": relative_path(folder, arguments.config)}
    extra_keys = {
        **allowed_findings(native, arguments.allow),
        **copied_operators(native, arguments.config, folder),
    }
    write_project(folder, {**project, **extra_keys})
    dialect_notes = (*repeat_notes(document), *notes(document))
    append_log(LOGS["makertbin"], config_text(document))
    append_log(LOGS["makertbin"], *(f"note: {note.what} ({note.where})" for note in dialect_notes))
    with worded_as(arguments.config, folder):
        return _build(folder, working, prefix, bool(vendor.text(DEBUG)))


def _output(config: Path, vendor: VendorYaml) -> tuple[Path, str]:
    """working_dir, relative to the folder of the YAML file, and the prefix."""
    working = config.parent / vendor.text("model_parameters.working_dir")
    return working, vendor.text("model_parameters.output_model_file_prefix")


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
