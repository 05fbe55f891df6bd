"""The notebook runs as it stands, and so does every block of docs/python.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workspaces import REPO, Workspace, copied

NOTEBOOK = REPO / "examples" / "quantize.ipynb"
BLOCKS = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_notebook_runs(built_once: Workspace, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    root = copied(built_once, tmp_path / "w")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(root.root)}})
    client.execute()
    shown = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert len(shown) == 5
    assert all("<table" in table for table in shown)
    assert notebook.cells[-1].outputs[0]["data"]["text/plain"] == "{'current'}"


def test_the_notebook_is_committed_without_outputs() -> None:
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.slow
def test_the_blocks_of_the_page_run(
    built_once: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    root = copied(built_once, tmp_path / "w")
    monkeypatch.chdir(root.root)
    blocks = BLOCKS.findall((REPO / "docs" / "python.md").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)  # our own page
    assert len(blocks) == 2
    assert (root.root / "digits.hybrid").is_file()
