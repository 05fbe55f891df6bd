"""npumake hrt_model_exec: the vendor's board command, run here in exact integers

example:
  npumake hrt_model_exec model_info --model_file m.hybrid
  npumake hrt_model_exec perf --model_file m.hybrid --model_name="" --frame_count=200
  npumake hrt_model_exec infer --model_file m.hybrid --input_file cat.jpg --enable_dump=true

The same as `npumake info`, `bench` and `run`; times are measured on this machine. --enable_dump
writes the outputs to <model>_infer_dump.npz.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npumake.cli import code_trust
from npumake.errors import ProjectError

# Options for the board: accepted, without effect here.
BOARD_OPTIONS = (
    *("core_id", "roi", "roi_infer", "dump_intermediate", "dump_precision", "dump_format"),
    *("hybrid_dequantize_process", "dump_txt_axis", "enable_cls_post_process"),
)
TIMING_OPTIONS = ("frame_count", "perf_time", "thread_num", "profile_path")


def arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text in (
        ("model_info", "show the inputs and outputs of a model"),
        ("infer", "run a model on files"),
        ("perf", "time a model on this machine"),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument("--model_file", type=Path, required=True, metavar="MODEL")
        command.add_argument("--model_name", default="", metavar="NAME")
        command.add_argument("--input_file", default="", metavar="A,B", help="one per input")
        command.add_argument("--enable_dump", default="false", metavar="true|false")
        for option in TIMING_OPTIONS:
            command.add_argument(f"--{option}", metavar="N")
        for option in BOARD_OPTIONS:
            command.add_argument(f"--{option}", help=argparse.SUPPRESS)
        code_trust.arguments(command)


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.main import main

    for name in BOARD_OPTIONS:
        if getattr(arguments, name) not in (None, "0", "false"):
            print(f"note: --{name} is ignored: it applies to the board only")
    model_name = ["-m", arguments.model_name] if arguments.model_name else []
    if arguments.command == "model_info":
        return main(["info", str(arguments.model_file), *model_name])
    if arguments.command == "perf":
        timing = [
            f"--{name}={value}" for name in TIMING_OPTIONS if (value := getattr(arguments, name))
        ]
        return main(
            ["bench", str(arguments.model_file), *model_name, *timing, *_trust_flags(arguments)]
        )
    return main(
        [
            "run",
            str(arguments.model_file),
            *model_name,
            *_inputs(arguments),
            *_trust_flags(arguments),
        ]
    )


def _trust_flags(arguments: argparse.Namespace) -> list[str]:
    operators = [f"--operators={file}" for file in getattr(arguments, "operators", None) or ()]
    return [*operators, *(["--allow-code"] if getattr(arguments, "allow_code", False) else [])]


def _inputs(arguments: argparse.Namespace) -> list[str]:
    """The --input flags, in the order of the inputs. Raises ProjectError for a wrong number."""
    files = [file for file in arguments.input_file.split(",") if file]
    if not files:
        raise ProjectError("no input files", "--input_file", "give one per input, with commas")
    flags = [f"--input={file}" for file in files]
    if len(files) > 1:
        names = code_trust.session(
            arguments, arguments.model_file, arguments.model_name or None
        ).input_names
        if len(names) != len(files):
            message = f"{len(files)} files for {len(names)} inputs"
            raise ProjectError(message, "--input_file", "one per input: " + ", ".join(names))
        flags = [f"--input={name}={file}" for name, file in zip(names, files, strict=True)]
    if arguments.enable_dump.lower() in ("true", "1"):
        flags.append(f"--save={arguments.model_file.stem}_infer_dump.npz")
    return flags
