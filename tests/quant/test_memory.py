"""Calibration takes no more memory for many samples than for few, whatever is searched."""

import subprocess
import sys

import pytest

from draws import EVERY
from processes import PEAK

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak in /proc")
# A first layer so wide that what forty samples carry of it does not fit.
SCRIPT = """
import sys

import numpy as np

from npumake.data.samples import Samples
from npumake.graph import parse_text
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.stages.calibrated import calibrated
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

rng = np.random.default_rng(0)
SIZES = {"u": (32, 3, 3, 3), "v": (16, 32, 4, 4), "w": (8, 16, 4, 4), "z": (10, 8, 6, 6)}
TEXT = (
    '<ir_version: 9, opset_import: ["" : 17]> a (float[1,3,96,96] x) => (float[1,10,1,1] y) '
    "{ a = Conv<pads=[1,1,1,1]>(x, u)  b = Relu(a)  c = Conv<strides=[4,4]>(b, v)  d = Relu(c)"
    "  e = Conv<strides=[4,4]>(d, w)  f = Relu(e)  y = Conv(f, z) }"
)


def weight(name):
    values = ",".join(f"{number:.4f}" for number in rng.normal(size=SIZES[name]).ravel())
    return f"float[{','.join(map(str, SIZES[name]))}] {name} = {{{values}}}"


def fed(number):
    own = np.random.default_rng(number)
    return {"x": own.uniform(0, 1, (1, 3, 96, 96)).astype(np.float32)}


graph = parse_text(TEXT.replace("{", f"<{', '.join(map(weight, SIZES))}> {{", 1)).with_shapes()
samples = Samples(tuple(map(str, range(int(sys.argv[1])))), fed)
target = read_target("ara240")
asked = Calibration(recipe="best") if sys.argv[2] == "best" else Calibration(sys.argv[2])
found = recipe(graph, observe(graph, samples), samples, asked, target)
calibrated(graph, found, samples, target)
print(PEAK)
""".replace("PEAK", PEAK)


def peak(samples: int, method: str) -> int:
    """Kilobytes, of a process of its own."""
    command = [sys.executable, "-c", SCRIPT, str(samples), method]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["max", "default", "best"])
def test_many_samples_take_hardly_more_than_fifty(method):
    """Measured, of a thousand: 1.02 times and less."""
    assert peak(1000 if EVERY else 250, method) <= 1.2 * peak(50, method)
