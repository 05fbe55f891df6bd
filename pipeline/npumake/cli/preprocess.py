"""npumake preprocess: convert pictures to inputs of D-Robotics' public models, one file each

example:
  npumake preprocess -m mobilenetv1 -i pictures -o prepared -v val.txt

models: mobilenetv1, mobilenetv2, resnet18, resnet50, googlenet, vargconvnet,
        efficientnet_lite0 to efficientnet_lite4

Files are named <picture>_<height>_<width>_<height>_<width>.bin: the old size, then the new one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npumake.errors import ProjectError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--model_name", required=True, metavar="MODEL")
    parser.add_argument("-i", "--image_dir", type=Path, required=True, metavar="DIR")
    parser.add_argument("-o", "--output_dir", type=Path, required=True, metavar="DIR")
    parser.add_argument("-v", "--val_txt", type=Path, metavar="FILE", help="a picture per line")
    parser.add_argument("--form", default="nv12", help="nv12 (default), rgb, bgr, …")


def run(arguments: argparse.Namespace) -> int:
    from npumake.cache.folders import make_folder
    from npumake.cache.publish import replacing
    from npumake.data.pictures import pixels
    from npumake.data.presets import preset
    from npumake.data.raw_images import to_raw
    from npumake.runtime.picture import read

    files = _chosen(arguments.image_dir, arguments.val_txt)
    make_folder(arguments.output_dir)
    for file in files:
        rgb = pixels(read(file), file.name, "RGB", upright=True)
        image = preset(rgb, arguments.model_name, file.name)
        sizes = "_".join(str(side) for side in (*rgb.shape[:2], *image.shape[:2]))
        with replacing(arguments.output_dir / f"{file.stem}_{sizes}.bin") as temporary:
            temporary.write_bytes(to_raw(image, arguments.form))
    print(f"{len(files)} pictures in {arguments.output_dir}")
    return 0


def _chosen(folder: Path, listed: Path | None) -> list[Path]:
    """The pictures of a folder, or only those in the list. Raises ProjectError."""
    from npumake.runtime.picture import PICTURES, read

    if not folder.is_dir():
        raise ProjectError("no such folder", str(folder))
    pictures = {f.name: f for f in sorted(folder.iterdir()) if f.suffix.lower() in PICTURES}
    if listed is None:
        return list(pictures.values())
    lines = read(listed).decode("utf-8", "replace").splitlines()
    names = [line.split()[0] for line in lines if line.strip()]
    if missing := [name for name in names if name not in pictures]:
        raise ProjectError(f"no picture `{missing[0]}` in {folder}", str(listed))
    return [pictures[name] for name in names]
