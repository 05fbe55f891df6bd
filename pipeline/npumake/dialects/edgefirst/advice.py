"""What is told of a project that speaks the Ara2 Converter's form.

The form has four keys. All else is a key of the project that names the form, which wins over it.
"""

from __future__ import annotations

from npumake.dialects.phrases import Phrases

PHRASES: Phrases = (
    (
        r"(under `(?:inputs|data|model)):`",
        r"\1:` of project.yaml, beside `dialect: ara2`",
    ),
    (r"write  method: (\w+)", r"write  calibration: {method: \1}  in project.yaml"),
)
