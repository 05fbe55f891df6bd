"""report: one HTML page of the project, with every target and variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npumake.cache.store import Record
from npumake.report.findings import Findings
from npumake.report.page import Page, page


def report(
    findings: Mapping[str, Findings],
    provenance: Mapping[str, Record],
    refused: Mapping[str, Sequence[str]],
) -> Page:
    return page(findings, provenance, refused)
