"""Wording of messages for a project in the Ara2 Converter's form.

The form has four keys. All other settings are keys of project.yaml, which override the form.
"""

from __future__ import annotations

from npumake.dialects.phrases import ALLOWANCES, Phrases

PHRASES: Phrases = (
    *ALLOWANCES,
    (
        r"(under `(?:inputs|data|model)):`",
        r"\1:` of project.yaml, beside `dialect: ara2`",
    ),
    (r"write  method: (\w+)", r"write  calibration: {method: \1}  in project.yaml"),
)
