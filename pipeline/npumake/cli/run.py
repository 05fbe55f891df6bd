"""npumake run: run a model on pictures and print classes, boxes of a detector, or outputs

example:
  npumake run mobilenet:rdk-x5 cat.jpg dog.jpg --labels labels.txt
  npumake run out/yolo.ara240.hybrid street.jpg --draw boxes.png
  npumake run model.onnx --input a=one.npy --input b=two.npy --save answers.npz

MODEL is a file, or PROJECT[:TARGET] that was built. A picture is stretched to the input's size and
fed as pixel - offset. Boxes need a detector's metadata in the file. For models that do not classify
it summarizes the outputs. In place of a file that only an Ethos-U runs, its quantized graph runs.
Code in a file runs only with --allow-code.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from npumake import digest
from npumake.cache.folders import make_folder
from npumake.cli import code_trust
from npumake.cli.keys import keys_of
from npumake.errors import ProjectError, did_you_mean

NOT_FINITE = "not finite"
LOWER = "--score sets a lower limit"
UNKNOWN_FEED = (
    "pixels are fed as value - {offset}, in rgb unless --colors says otherwise, which may not be "
    "what this model was trained on; npumake new measures that on pictures"
)

if TYPE_CHECKING:
    import numpy as np

    from npumake.cli.run_source import RunSource
    from npumake.detection.metadata import Metadata
    from npumake.runtime import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a file, or PROJECT[:TARGET]")
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="a picture, a .npy file or raw numbers: a run each"
    )
    parser.add_argument(
        *("-i", "--input"),
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="the same for one of several inputs of one run",
    )
    parser.add_argument("-m", dest="name", metavar="NAME", help="one of a packed model")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="a class per line")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="classes to show, 5")
    parser.add_argument("--colors", help="rgb, bgr, gray or yuv444; default: that of the project")
    parser.add_argument(
        "--offset", type=int, default=128, help="subtracted from each pixel; default 128"
    )
    parser.add_argument("--score", type=float, default=0.5, help="minimum of a box; default 0.5")
    parser.add_argument(
        "--draw", type=Path, metavar="FILE", help="the picture with its boxes; of several, a folder"
    )
    parser.add_argument("--save", type=Path, metavar="FILE.npz", help="every output, unchanged")
    parser.add_argument("--threads", type=int, metavar="N")
    parser.add_argument("--json", action="store_true", help="for machines")
    code_trust.arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.cli.run_source import source_of
    from npumake.detection.carriers import embedded_metadata

    runs = _runs(arguments)
    keys = keys_of(arguments)
    source = source_of(arguments.model, arguments.name, keys)
    if source.note:
        print(f"note: {source.note}", file=sys.stderr)
    session = code_trust.session(arguments, source.path, arguments.name, arguments.threads)
    if not source.is_built and _is_fed_pixels(runs, session):
        print(f"note: {UNKNOWN_FEED.format(offset=arguments.offset)}", file=sys.stderr)
    model = RunModel(source, session, *embedded_metadata(source.path, arguments.name, keys))
    if arguments.draw and not model.is_detector:
        hint = "without --draw it prints classes or outputs; boxes need a detector's metadata"
        raise ProjectError("no boxes to draw", "--draw", hint)
    documents = []
    for files in runs:
        rows = _rows(arguments, model, files, len(runs) > 1)
        documents.append({"file": files[0], "results": rows})
        if not arguments.json:
            if len(runs) > 1:
                print(f"{files[0]}:")
            print(_text(rows) or f"no box scores {arguments.score:g} or more; {LOWER}")
    if arguments.json:
        print(digest.text(documents if len(runs) > 1 else documents[0]["results"], indent=1))
    return 0


class RunModel(NamedTuple):
    """A file that runs, with the metadata that it carries."""

    source: RunSource
    session: Session
    metadata: Metadata | None
    classes: tuple[str, ...]

    @property
    def is_detector(self) -> bool:
        return self.metadata is not None and self.metadata.has_decoder


def _runs(arguments: argparse.Namespace) -> list[list[str]]:
    """The files of each run. Raises ProjectError for options that do not fit."""
    if arguments.threads is not None and arguments.threads < 1:
        raise ProjectError(f"{arguments.threads} is not a number of threads", "--threads")
    if bool(arguments.files) == bool(arguments.input):
        hint = f"npumake run {arguments.model} picture.jpg"
        message = "files of two kinds" if arguments.files else "nothing to run the model on"
        hint = "leave out --input, or name each file by it" if arguments.files else hint
        raise ProjectError(message, "--input", hint)
    runs = [[file] for file in arguments.files] or [arguments.input]
    if len(runs) > 1 and arguments.save:
        raise ProjectError("the outputs of one run are saved", "--save", "name one picture")
    stems = [Path(file).stem for (file, *_) in runs]
    if arguments.draw and len({*stems}) < len(stems):
        raise ProjectError("two pictures of one name", "--draw", "draw them into two folders")
    return runs


def _is_fed_pixels(runs: Sequence[Sequence[str]], session: Session) -> bool:
    """Whether a float input is fed a picture."""
    from npumake.runtime.picture import PICTURES

    is_picture = any(file.lower().endswith(PICTURES) for files in runs for file in files)
    return is_picture and any(port.dtype.kind == "f" for port in session.get_inputs())


def _rows(
    arguments: argparse.Namespace, model: RunModel, options: list[str], is_one_of_many: bool
) -> list[dict[str, Any]]:
    """Runs the model once. Raises PipelineError."""
    session = model.session
    files = files_of(options, session.input_names)
    colors = arguments.colors or model.source.colors
    results = session.run(None, feeds_of(session, files, colors), arguments.offset)
    outputs = dict(zip(session.output_names, results, strict=True))
    if arguments.save:
        _save(arguments.save, outputs)
    labels = _lines(arguments.labels) if arguments.labels else model.classes
    if model.metadata is not None and model.is_detector:
        from npumake.cli.boxes import box_rows, boxes_of, draw_boxes

        picture, port = files[session.input_names[0]], session.get_inputs()[0]
        boxes = boxes_of(outputs, model.metadata, port, picture, arguments.score)
        labels = labels or model.metadata.classes
        if arguments.draw:
            file = arguments.draw
            if is_one_of_many:
                make_folder(file)
                file /= f"{picture.stem}.png"
            draw_boxes(file, picture, boxes, labels)
        return box_rows(boxes, labels)
    if len(results) == 1 and _is_vector(results[0]):
        return _classes(results[0], arguments.top, labels)
    return _outputs(outputs)


def files_of(options: list[str], names: tuple[str, ...]) -> dict[str, Path]:
    """A file for every input. Raises ProjectError."""
    files: dict[str, Path] = {}
    for text in options:
        name, _, file = text.rpartition("=")
        if not name and len(names) > 1:
            raise ProjectError("the model has several inputs", "--input", f"{names[0]}={file}")
        if name and name not in names:
            raise ProjectError(f"no input `{name}`", "--input", did_you_mean(name, names))
        files[name or names[0]] = Path(file)
    return files


def feeds_of(session: Session, files: dict[str, Path], colors: str | None) -> dict[str, np.ndarray]:
    from npumake.runtime.picture import feed_from_file

    ports = {port.name: port for port in session.get_inputs()}
    return {name: feed_from_file(file, ports[name], colors) for name, file in files.items()}


def _lines(file: Path) -> tuple[str, ...]:
    from npumake.runtime.picture import read

    lines = read(file).decode("utf-8", "replace").splitlines()
    return tuple(line.strip() for line in lines if line.strip())


def _is_vector(values: np.ndarray) -> bool:
    """Whether the output is a vector of numbers: one score per class."""
    return values.dtype.kind in "biuf" and values.size == max(values.shape, default=1)


def _classes(scores: np.ndarray, count: int, labels: tuple[str, ...]) -> list[dict[str, Any]]:
    """The highest scores; ties keep their order."""
    import numpy as np

    from npumake.cli.boxes import label_of

    flat = scores.reshape(-1)
    return [
        {"class": int(at), "label": label_of(labels, int(at)), "score": float(flat[at])}
        for at in np.argsort(-flat.astype(np.float64), kind="stable")[: max(count, 0)]
    ]


def _outputs(outputs: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    import numpy as np

    def figures(values: np.ndarray) -> dict[str, float]:
        if values.dtype.kind not in "biuf":  # an output may be text
            return {}
        real = values[np.isfinite(values)].astype(np.float64)
        statistics = (
            {"min": real.min(), "mean": real.mean(), "max": real.max()} if real.size else {}
        )
        others = values.size - real.size
        return statistics | ({NOT_FINITE: others} if others else {})

    return [
        {"output": name, "type": str(values.dtype), "shape": list(values.shape)}
        | {message: float(figure) for message, figure in figures(values).items()}
        for name, values in outputs.items()
    ]


def _save(file: Path, outputs: Mapping[str, np.ndarray]) -> None:
    """As numpy.savez, but with any output name, and with text as fixed-width strings."""
    import numpy as np

    from npumake.cache.publish import replacing

    if file.suffix != ".npz":
        raise ProjectError("the outputs are saved as .npz", "--save", f"{file.stem}.npz")
    with replacing(file) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, values in outputs.items():
            plain = values.astype(np.str_) if values.dtype.kind == "O" else values
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, plain, allow_pickle=False)


def _text(rows: list[dict[str, Any]]) -> str:
    return "\n".join(_output(row) if "output" in row else _scored(row) for row in rows)


def _output(row: dict[str, Any]) -> str:
    keys = [key for key in ("min", "mean", "max", NOT_FINITE) if key in row]
    figures = (f"  {key} {row[key]:.6g}" for key in keys)
    return f"{row['output']}: {row['type']}{row['shape']}{''.join(figures)}"


def _scored(row: dict[str, Any]) -> str:
    box = f"  x, y, width, height = {row['box']}" if "box" in row else ""
    return f"{row['score']:10.4f}  {row['class']:5}  {row['label']}{box}"
