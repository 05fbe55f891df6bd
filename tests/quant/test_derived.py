"""What is not watched, and what is counted of what is watched: against every value there was."""

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.frontends import read_model
from npumake.graph import parse_text, shape, upgraded
from npumake.kernels.histogram import histogram
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.derived_statistics import derivations
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.thresholds import threshold
from npumake.quant.precision.placement import observed_tensors
from workspaces import shared_data

GRAPH = parse_text(
    """a (float[1,2,8,8] x) => (float[] y) <float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}>
    { c = Conv(x, w)  s = Sigmoid(c)  m = Mul(c, s)  h = HardSwish(x)  t = Tanh(m)
      y = Concat<axis=1>(m, h, t) }"""
)
FILES = ("detection/yolox_person_192.onnx", "classification/squeezenet1.1_winml_fp32_DERIVED.onnx")


def fed(graph, count=8):
    rng = np.random.default_rng(0)
    (value,) = graph.inputs
    return [
        {str(value.name): rng.normal(size=shape(value)).astype(np.float32)} for _ in range(count)
    ]


def every_value(graph, feeds):
    """By tensor, all its values over `feeds`: (samples, *shape)."""
    names = observed_tensors(graph)
    watched = graph.copy()
    watched.expose(names)
    session = OrtSession(watched.to_bytes())
    runs = [session.run(None, feed) for feed in feeds]
    return {name: np.stack(made) for name, made in zip(names, zip(*runs, strict=True), strict=True)}


def test_what_follows_from_others_is_not_watched():
    assert observed_tensors(GRAPH) == ("x", "c", "s", "m", "h", "t", "y")
    assert list(derivations(GRAPH, observed_tensors(GRAPH))) == ["s", "m", "h", "y"]


def test_its_extremes_are_those_it_had_and_its_histogram_is_close():
    feeds = fed(GRAPH)
    found = observe(GRAPH, feeds)
    for name, values in every_value(GRAPH, feeds).items():
        size = float(np.abs(values).max())
        whole = found.tensors[name]
        assert [whole.low, whole.high] == pytest.approx(
            [values.min(), values.max()], abs=2**-14 * size
        )
        axes = (0, 1, 3, 4)
        for side, least in (("low", values.min), ("high", values.max)):
            assert getattr(found.channels[name], side) == pytest.approx(
                least(axes), abs=0.01 * size
            )
            own = getattr(found.samples[name], side)
            assert own == pytest.approx(least((1, 2, 3, 4)), abs=0.01 * size)
        exact = np.cumsum(histogram(values).counts)
        assert np.abs(np.cumsum(whole.counts) - exact).max() <= 0.02 * values.size


@pytest.mark.parametrize("part", ["h", "s"])
def test_channels_in_a_row_of_images_below_each_other_are_not_known(part):
    graph = parse_text(
        f"""a (float[1,2,8,8] x) => (float[] y) {{ n = Neg(x)  h = Concat<axis=2>(x, n)
        s = Sigmoid(h)  c = Sin(h)  y = Concat<axis=1>(c, {part}) }}"""
    ).with_shapes()
    found = observe(graph, fed(graph))
    assert {"x", "n", "c"} <= found.channels.keys()
    assert not {"h", "s", "y"} & found.channels.keys()
    for name, values in every_value(graph, fed(graph)).items():
        whole = found.tensors[name]
        assert [whole.low, whole.high] == pytest.approx([values.min(), values.max()], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_thresholds_of_real_models_are_those_of_every_value(file):
    path = shared_data() / "models" / file
    if not path.is_file():
        pytest.skip("shared/data/models is not here")
    graph = optimized(upgraded(read_model(path.read_bytes(), path.name)).with_shapes())
    feeds = fed(graph)
    found = observe(graph, feeds).tensors
    for method, allowed in (("max", 1e-4), ("max_percentile", 0.1)):
        calibration = Calibration(method, percentile=0.99)
        errors = [
            threshold(found[name], calibration) / threshold(histogram(values), calibration) - 1
            for name, values in every_value(graph, feeds).items()
        ]
        assert np.mean(np.abs(errors)) <= allowed / 5
        assert np.quantile(np.abs(errors), 0.95) <= allowed


@pytest.mark.slow
def test_a_large_model_in_parts_has_the_same_statistics(tmp_path):
    path = shared_data() / "models" / FILES[1]
    if not path.is_file():
        pytest.skip("shared/data/models is not here")
    graph = optimized(upgraded(read_model(path.read_bytes(), path.name)).with_shapes())
    feeds = fed(graph, 2)
    observe(graph, feeds).save(tmp_path / "whole.npz")
    observe(graph, feeds, ceiling=1 << 21).save(tmp_path / "parts.npz")
    assert (tmp_path / "whole.npz").read_bytes() == (tmp_path / "parts.npz").read_bytes()
