"""The reference pages of the site: YAML keys from the schemas, verbs from their parsers.

The pages are written when the site is built, so that they cannot differ from the code.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from npumake.cli.main import ALIASES, VERBS
from npumake.cli.targets import described
from npumake.project.schema import editor_schema
from npumake.targets.reader import read_target, target_names

Schema = Mapping[str, Any]


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    return {
        "project.md": project_page(),
        "commands.md": commands_page(),
        "chips.md": chips_page(),
    }


def project_page() -> str:
    schema = editor_schema(target_names())
    lines = [
        "# Keys of project.yaml",
        "",
        "This page is written from the JSON Schema that validates a project. A section can also be",
        "a file of its own: `calibration.yaml` contains the keys of `calibration`.",
        "",
    ]
    for name, section in schema["properties"].items():
        lines += [f"## `{name}`", "", sentence(section), ""]
        rows = [*key_rows(section, "")]
        if rows:
            lines += ["| key | type | default | meaning |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def key_rows(schema: Schema, prefix: str) -> Iterator[str]:
    """A row for each key below `schema`, depth first."""
    for key, inner in schema.get("properties", {}).items():
        name = f"{prefix}{key}"
        default = code(json.dumps(inner["default"])) if has_default(inner) else ""
        yield f"| {code(name)} | {cell(type_text(inner))} | {default} | {cell(sentence(inner))} |"
        yield from key_rows(inner, f"{name}.")
    many = schema.get("additionalProperties")
    if isinstance(many, dict) and "$ref" not in many:
        yield from key_rows(many, f"{prefix}<name>.")
    items = schema.get("items")
    if isinstance(items, dict):
        yield from key_rows(items, f"{prefix}[].")


def has_default(schema: Schema) -> bool:
    return schema.get("default") is not None and not isinstance(schema["default"], dict)


def type_text(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"] if value is not None)
    kinds = schema.get("type", "any")
    names = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = " ".join(
        f"{sign} {bound}" for sign, bound in (("≥", low), ("≤", high)) if bound is not None
    )
    return f"{' or '.join(names)} {bounds}".strip()


def sentence(schema: Schema) -> str:
    return str(schema.get("description", ""))


def commands_page() -> str:
    lines = [
        "# Commands",
        "",
        "This page is written from the parsers. `npumake VERB --help` prints the same.",
        "",
    ]
    for verb, name in VERBS.items():
        module = import_module(f"npumake.cli.{name}")
        summary = (module.__doc__ or "").partition("\n")[0].partition(": ")[2]
        lines += [f"## npumake {verb}", "", capitalized(summary), ""]
        lines += ["```text", help_text(verb, module), "```", ""]
    lines += ["## Vendors' program names", "", "| program | verb |", "|---|---|"]
    lines += [f"| `npumake {alias}` | `{name}` |" for alias, name in ALIASES.items()]
    return "\n".join([*lines, ""])


def help_text(verb: str, module: ModuleType) -> str:
    """The help of a verb, 88 columns wide, without its summary."""
    _, _, rest = (module.__doc__ or "").partition("\n")

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, width=88)

    parser = argparse.ArgumentParser(
        prog=f"npumake {verb}", epilog=rest.strip(), formatter_class=formatter
    )
    module.arguments(parser)
    return parser.format_help().rstrip()


def chips_page() -> str:
    columns = (
        "name",
        "vendor",
        "unit",
        "activations",
        "weights",
        "compiler",
        "file",
        "vendor_tool",
    )
    lines = [
        "# Chips",
        "",
        "Names for `targets:` and `--target`, as `npumake targets` prints them.",
        "",
    ]
    lines += [f"| {' | '.join(name.replace('_', ' ') for name in columns)} |"]
    lines += ["|---" * len(columns) + "|"]
    for name in target_names():
        facts = described(read_target(name))
        lines.append(f"| {' | '.join(code(str(facts[key] or '')) for key in columns)} |")
    return "\n".join([*lines, ""])


def capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def cell(text: str) -> str:
    """As text of a table: no bar ends the cell, and `<name>` is no tag."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")
