"""What each dialect calibrates by where its file says nothing, as its document has it."""

from __future__ import annotations

import pytest
import yaml

from dialect_cases import HB_COMPILE, HB_MAPPER, changed, document
from npumake.dialects.table import DIALECTS
from npumake.digest import Json
from npumake.project.document import parse_document
from npumake.project.reader import sections_of
from npumake.project.scalar import older_meaning
from npumake.project.sections import Modelwise
from npumake.quant.correction.corrections import SWITCHES

METAFILE = "inputs: [{name: x, shape: [1, 3, 8, 8]}]\nquantization: {dataset: ['x/*.npy']}\n"
NO_TYPE = {"calibration_type": None, "max_percentile": None, "per_channel": None}
SILENT = {
    "hb_mapper": changed(HB_MAPPER, NO_TYPE),
    "hb_compile": changed(HB_COMPILE, NO_TYPE),
    "synap": METAFILE,
}
METHOD = {"hb_mapper": "modelwise", "hb_compile": "modelwise", "synap": "max"}
BESIDE: Json = {"model": {"path": "m.onnx"}, "targets": ["sl1680"]}


def native(name: str, text: str) -> Json:
    return DIALECTS[name]().translate(document(text), "", BESIDE if name == "synap" else {}).data


@pytest.mark.parametrize("name", SILENT)
def test_a_silent_file_is_calibrated_as_the_tool_does(name: str):
    assert native(name, SILENT[name])["calibration"] == {"method": METHOD[name]}


@pytest.mark.parametrize("name", ["hb_mapper", "hb_compile"])
def test_the_search_is_that_of_the_vendor_s_log(name: str):
    search = Modelwise()
    assert search.methods == ("max", "kl")
    assert search.percentiles == (0.99995, 1.0)
    assert set(search.per_channel) == set(search.asymmetric) == {True, False}
    assert (search.similarity, search.metric) == (0.995, "cosine-similarity")
    text = changed(SILENT[name], {"calibration_type": "default"})
    assert native(name, text) == native(name, SILENT[name])


@pytest.mark.parametrize("name", SILENT)
def test_no_switch_is_on_that_the_file_does_not_ask_for(name: str):
    found = yaml.safe_dump({**native(name, SILENT[name]), **BESIDE})
    said = sections_of(parse_document(found.encode(), "p", older_meaning)).quantization
    names = (switch for switch in SWITCHES if switch != "per_channel")
    assert {getattr(said, switch) for switch in names} == {None}


def test_auto_of_synap_is_the_best_of_its_three_methods():
    found = native("synap", METAFILE.replace("dataset", "algorithm: auto, dataset"))
    assert found["calibration"]["method"] == "modelwise"
    assert found["calibration"]["modelwise"]["methods"] == ["max", "kl", "moving_average"]
