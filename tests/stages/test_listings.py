"""A build for a chip of SyNAP's leaves what its converter leaves; others leave nothing of it."""

from __future__ import annotations

import pytest
import yaml

from npumake.stages.listings import Listings
from workspaces import Workspace

FILES = ["model_info.txt", "quantization_info.yaml", "quantization_entropy.txt"]


def test_a_build_by_kl_has_all_three(listed_once: Workspace):
    texts = Listings.load(listed_once.project / "out/listings.sl1680.zip").texts
    assert list(texts) == FILES
    assert texts["model_info.txt"].startswith("Model converted with npumake (npumake-hybrid ")
    assert "'@stem_conv:weight'" in texts["quantization_info.yaml"]
    assert all(name.startswith("@") for name in yaml.safe_load(texts["quantization_info.yaml"]))
    assert texts["quantization_entropy.txt"].startswith("@")


@pytest.mark.slow
def test_another_method_loses_the_entropy_and_another_chip_all(fresh: Workspace):
    file = fresh.project / "project.yaml"
    said = file.read_text().partition("calibration:")[0]
    file.write_text(f"{said}calibration: {{method: max}}\ntargets: [rdk-x5, vs640, sl1620]\n")
    fresh.doit()
    found = sorted(path.name for path in fresh.project.glob("out/listings.*"))
    assert found == ["listings.sl1620.zip", "listings.vs640.zip"]
    assert list(Listings.load(fresh.project / "out/listings.vs640.zip").texts) == FILES[:2]
    no_npu = Listings.load(fresh.project / "out/listings.sl1620.zip").texts
    assert "subgraphs: " in no_npu["model_info.txt"]
