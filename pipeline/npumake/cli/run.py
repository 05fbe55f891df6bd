"""npumake run: run a model on a picture and print classes, boxes of a detector, or outputs

example:
  npumake run out/mobilenet.rdk-x5.hybrid --input cat.jpg --labels labels.txt
  npumake run out/yolo.ara240.hybrid --input street.jpg --draw boxes.png
  npumake run model.onnx --input a=one.npy --input b=two.npy --save answers.npz

A picture is stretched to the input's size and fed as pixel - offset. Boxes need a detector's
metadata in the file. For models that do not classify, it summarizes the outputs. Code in a file
runs only with --allow-code.
"""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake import digest
from npumake.cli import code_trust
from npumake.cli.keys import keys_of
from npumake.errors import ProjectError, did_you_mean

NOT_FINITE = "not finite"
# `fed_type` of a project: the colors of a picture; the model is fed nv12 as yuv444.
FED_COLORS = {"rgb": "rgb", "bgr": "bgr", "gray": "gray", "yuv444": "yuv444", "nv12": "yuv444"}

if TYPE_CHECKING:
    import numpy as np

    from npumake.detection.metadata import Metadata
    from npumake.runtime import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument(
        *("-i", "--input"),
        action="append",
        required=True,
        metavar="[NAME=]FILE",
        help="a picture, a .npy file or raw numbers",
    )
    parser.add_argument("-m", dest="name", metavar="NAME", help="one of a packed model")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="a class per line")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="classes to show, 5")
    parser.add_argument(
        "--colors", help="rgb, bgr, gray or yuv444; default: that of the bundle's project"
    )
    parser.add_argument(
        "--offset", type=int, default=128, help="subtracted from each pixel; default 128"
    )
    parser.add_argument("--score", type=float, default=0.5, help="minimum of a box; default 0.5")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="the picture with its boxes")
    parser.add_argument("--save", type=Path, metavar="FILE.npz", help="every output, unchanged")
    parser.add_argument("--threads", type=int, metavar="N")
    parser.add_argument("--json", action="store_true", help="for machines")
    code_trust.arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.detection.carriers import embedded_metadata

    if arguments.threads is not None and arguments.threads < 1:
        raise ProjectError(f"{arguments.threads} is not a number of threads", "--threads")
    session = code_trust.session(arguments, arguments.model, arguments.name, arguments.threads)
    files = files_of(arguments.input, session.input_names)
    colors = arguments.colors or fed_colors(arguments)
    results = session.run(None, feeds_of(session, files, colors), arguments.offset)
    outputs = dict(zip(session.output_names, results, strict=True))
    if arguments.save:
        _save(arguments.save, outputs)
    metadata, classes = embedded_metadata(arguments.model, arguments.name, keys_of(arguments))
    labels = _lines(arguments.labels) if arguments.labels else classes
    no_box = ""
    if metadata is not None and metadata.has_decoder:
        picture = files[session.input_names[0]]
        rows = _boxes(session, outputs, metadata, arguments, picture, labels or metadata.classes)
        no_box = f"no box scores {arguments.score:g} or more; --score asks for less"
    elif arguments.draw:
        message, hint = "no boxes to draw", "the file has no metadata of a detector"
        raise ProjectError(message, "--draw", hint)
    elif len(results) == 1 and _is_vector(results[0]):
        rows = _classes(results[0], arguments.top, labels)
    else:
        rows = _outputs(outputs)
    print(digest.text(rows, indent=1) if arguments.json else _text(rows) or no_box)
    return 0


def fed_colors(arguments: argparse.Namespace) -> str | None:
    """The color format of a bundle's input, by its record; None for another file, or without
    one."""
    from npumake.bundle.archive import INPUTS, Bundle
    from npumake.bundle.opening import opened_one

    if arguments.model.suffix != Bundle.suffix:
        return None
    bundle = opened_one(arguments.model, arguments.name, keys_of(arguments))
    inputs = bundle.provenance.get(INPUTS)
    sections = [*inputs.values()] if isinstance(inputs, dict) else []
    if len(sections) != 1 or not isinstance(sections[0], dict):
        return None
    fed_type = sections[0].get("fed_type") or sections[0].get("type")
    return FED_COLORS.get(fed_type) if isinstance(fed_type, str) else None


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

    flat = scores.reshape(-1)
    return [
        {"class": int(at), "label": _label(labels, int(at)), "score": float(flat[at])}
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


def _label(labels: tuple[str, ...], index: int) -> str:
    return labels[index] if index < len(labels) else ""


def _boxes(
    session: Session,
    outputs: dict[str, np.ndarray],
    metadata: Metadata,
    arguments: argparse.Namespace,
    picture: Path,
    labels: tuple[str, ...],
) -> list[dict[str, Any]]:
    import numpy as np

    from npumake.cli.vendors.synap_images import save_picture
    from npumake.data.detections import Detection, with_detections
    from npumake.data.pictures import pixels
    from npumake.detection.decode import Rules, decode
    from npumake.runtime.picture import closed, read, size

    height, width = size(closed(session.get_inputs()[0]), picture.name)
    rules = Rules(score=arguments.score, class_aware=metadata.nms == "class_aware")
    detections = decode(outputs, metadata.outputs, (height, width), rules)
    rgb = pixels(read(picture), picture.name, "RGB", upright=True)
    corners = np.asarray(detections.boxes) * np.tile(rgb.shape[1::-1], 2)
    boxes = [
        Detection(int(kind), float(score), (round(x1), round(y1), round(x2 - x1), round(y2 - y1)))
        for (x1, y1, x2, y2), score, kind in zip(
            corners.tolist(), detections.scores, detections.classes, strict=True
        )
    ]
    if arguments.draw:
        save_picture(arguments.draw, with_detections(rgb, boxes, labels=labels))
    return [
        {
            "class": box.class_index,
            "label": _label(labels, box.class_index),
            "score": box.confidence,
            "box": list(box.box),
        }
        for box in boxes
    ]


def _text(rows: list[dict[str, Any]]) -> str:
    return "\n".join(_output(row) if "output" in row else _scored(row) for row in rows)


def _output(row: dict[str, Any]) -> str:
    keys = [key for key in ("min", "mean", "max", NOT_FINITE) if key in row]
    figures = (f"  {key} {row[key]:.6g}" for key in keys)
    return f"{row['output']}: {row['type']}{row['shape']}{''.join(figures)}"


def _scored(row: dict[str, Any]) -> str:
    box = f"  x, y, width, height = {row['box']}" if "box" in row else ""
    return f"{row['score']:10.4f}  {row['class']:5}  {row['label']}{box}"
