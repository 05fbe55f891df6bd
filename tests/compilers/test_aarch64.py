"""A .vmfb for an Arm processor computes under qemu-user what the one for this machine does.

NPUMAKE_AARCH64 names a folder with what these two commands download, as it comes:

    pip download --no-deps --only-binary :all: --platform manylinux_2_28_aarch64 iree-base-runtime
    apt-get download libc6-arm64-cross libgcc-s1-arm64-cross libstdc++6-arm64-cross

The first is IREE's runner, the second the C and C++ libraries it needs. qemu-aarch64 is of the
package qemu-user.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from compilers.files import MODELS, made
from npumake.compilers.backends import built
from npumake.runtime import Session
from npumake.runtime.codes import CodePort
from npumake.runtime.iree import INTERFACE
from npumake.targets.reader import read_target

FOLDER = Path(os.environ.get("NPUMAKE_AARCH64") or "absent")
WHEELS = sorted(FOLDER.glob("iree_base_runtime-*_aarch64.whl"))
PACKAGES = sorted(FOLDER.glob("*-arm64-cross_*.deb"))
RUNNER, SYSTEM = "iree/_runtime_libs/iree-run-module", "usr/aarch64-linux-gnu"
REAL = {
    "iree-cortex-a53": "audio/kws_tiny_float.tflite",
    "iree-cortex-a55": "classification/cifar10_resnet8_float.tflite",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here"),
    pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="no qemu-aarch64"),
    pytest.mark.skipif(not (WHEELS and PACKAGES), reason="NPUMAKE_AARCH64 names no downloads"),
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Path:
    """The root of an aarch64 system, with the runner in it."""
    root = tmp_path_factory.mktemp("aarch64")
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        wheel.extract(RUNNER, root)
    (root / RUNNER).chmod(0o755)
    for package in PACKAGES:
        for name, data in members(package.read_bytes()):
            if name.startswith("data.tar"):
                with tarfile.open(fileobj=io.BytesIO(data)) as files:
                    files.extractall(root, filter="data")
    return root


def members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Of a .deb, which is an `ar`: heads of 60 bytes with a name and a size, on even places."""
    at = len(b"!<arch>\n")
    while at < len(archive):
        name, size = archive[at : at + 16].decode().strip(" /"), int(archive[at + 48 : at + 58])
        yield name, archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def under_qemu(root: Path, file: Path, fed: list[np.ndarray]) -> list[np.ndarray]:
    """Real numbers for what is fed as the file takes it, in the order of its outputs."""
    with zipfile.ZipFile(file) as archive:
        ports = [CodePort(**port) for port in json.loads(archive.read(INTERFACE))["outputs"]]
    names = [file.with_name(f"out{index}.npy") for index in range(len(ports))]
    command = ["qemu-aarch64", "-L", root / SYSTEM, root / RUNNER]
    command += [f"--module={file}", "--function=main"]
    for index, values in enumerate(fed):
        np.save(file.with_name(f"in{index}.npy"), values)
        command.append(f"--input=@{file.with_name(f'in{index}.npy')}")
    command += [f"--output=@{name}" for name in names]
    subprocess.run([*command, "--device=local-sync"], check=True, capture_output=True)
    return [port.real(np.load(name)) for port, name in zip(ports, names, strict=True)]


@pytest.mark.parametrize("cpu", REAL)
def test_an_arm_processor_gives_the_codes_of_this_machine(machine, tmp_path, cpu):
    pytest.importorskip("iree.compiler", reason="npumake[compilers] is not installed")
    found, files = made(REAL[cpu]), {}
    for target in ("iree-cpu", cpu):
        files[target] = tmp_path / f"{target}.vmfb"
        files[target].write_bytes(built(found.program, found.graph, read_target(target), {}))
    host = Session(files["iree-cpu"], allow_code=True)
    rng = np.random.default_rng(0)
    for _ in range(3):
        fed = [
            rng.integers(-128, 128, port.shape).astype(port.dtype)
            if port.dtype == np.int8
            else rng.normal(size=port.shape).astype(port.dtype)
            for port in host.get_inputs()
        ]
        wanted = host.run(None, dict(zip(host.input_names, fed, strict=True)))
        for ours, theirs in zip(wanted, under_qemu(machine, files[cpu], fed), strict=True):
            np.testing.assert_array_equal(theirs, ours)
