"""hb_compile's YAML as a file, with the JSON file that its quant_config may name."""

from __future__ import annotations

from pathlib import Path

from npumake.dialects.horizon.entry import CONFIG_ROUTE
from npumake.errors import ProjectError
from npumake.project.document import Document, parse_document, path_text, read_source
from npumake.project.scalar import older_meaning
from npumake.project.vendor import Config, lenient_config


def read_config(file: Path) -> Config:
    """The file; a quant_config that names a JSON file is replaced by its content. Raises
    ProjectError."""
    whole = lenient_config(file)
    group, key = CONFIG_ROUTE
    top = whole.document.data if isinstance(whole.document.data, dict) else {}
    inside = top.get(group)
    name = inside.get(key) if isinstance(inside, dict) else None
    if not isinstance(inside, dict) or not isinstance(name, str) or not name.strip():
        return whole
    json_file = file.parent / name.strip()
    if not json_file.exists():
        place = whole.document.places[CONFIG_ROUTE].value
        hint = "`quant_config` is a mapping, or the name of a JSON file"
        raise ProjectError(f"no file `{name.strip()}`", place, hint)
    # JSON may use tabs for indentation, which YAML forbids; JSON strings contain no raw tab.
    source = read_source(json_file).replace(b"\t", b" ")
    config = parse_document(source, path_text(json_file), older_meaning, again=True)
    data = {**top, group: {**inside, key: config.data}}
    below = {(*CONFIG_ROUTE, *route): spot for route, spot in config.places.items()}
    places = {**whole.document.places, **below}
    repeated = (*whole.document.repeated, *config.repeated)
    return Config(Document(whole.document.path, data, places, repeated), (file, json_file))
