"""Build the site: the pages of docs/, and a reference of the YAML and the commands.

python docs/pages.py --out site     # needs npumake[docs]

A warning of Sphinx is an error: a link to a page or a heading that does not exist, or a page that
no other one lists.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import reference

DOCS = Path(__file__).parent
REPOSITORY = DOCS.parent
# Pages of the site that lie elsewhere in the repository, by their names there.
ELSEWHERE = {
    REPOSITORY / "CONTRIBUTING.md": Path("contributing.md"),
    REPOSITORY / "SECURITY.md": Path("security.md"),
    REPOSITORY / "CODE_OF_CONDUCT.md": Path("conduct.md"),
    REPOSITORY / "CHANGELOG.md": Path("changelog.md"),
    **{
        file: Path("gallery", f"{file.parent.name}.md")
        for file in sorted((REPOSITORY / "examples").glob("*/README.md"))
    },
}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#]+)(#[^)]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
OPTIONAL = re.compile(r"^([\w/-]+\*)\n", re.MULTILINE)  # pages of a toctree, if there are any
PICTURES = {".svg", ".png", ".jpg", ".webp"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=REPOSITORY / "site")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "docs"
        write_sources(sources)
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
        command += ["-c", str(DOCS / "site"), "-d", f"{folder}/doctrees", str(sources), str(out)]
        return subprocess.run(command, check=False).returncode


def write_sources(folder: Path) -> None:
    """The pages as Sphinx reads them: links lead to files of the site, the reference is there."""
    pages = {file: file.relative_to(DOCS) for file in DOCS.rglob("*.md")} | ELSEWHERE
    for file, place in pages.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(linked(file.read_text(encoding="utf-8"), file, place, folder), "utf-8")
    for file in DOCS.rglob("*"):
        if file.suffix in PICTURES:
            _copy(file, folder / file.relative_to(DOCS))
    for name, text in reference.pages().items():
        (folder / "reference").mkdir(exist_ok=True)
        (folder / "reference" / name).write_text(text, encoding="utf-8")


def linked(text: str, file: Path, place: Path, folder: Path) -> str:
    """The text of the page `place` with the links of `file`; files that it names are copied."""

    def link(match: re.Match[str]) -> str:
        words, name, anchor = match.groups()
        path = site_path((file.parent / name).resolve())
        if path is None:  # a folder: the site shows its name
            return words
        if path.parts[0] == "files":
            _copy(REPOSITORY / path.relative_to("files"), folder / path)
        return f"[{words}]({Path(os.path.relpath(path, place.parent)).as_posix()}{anchor or ''})"

    text = OPTIONAL.sub(lambda match: match[0] if [*file.parent.glob(match[1])] else "", text)
    parts = CODE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def site_path(file: Path) -> Path | None:
    """Where the site has a file of the repository; nothing for a folder."""
    if file in ELSEWHERE:
        return ELSEWHERE[file]
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS)
    return None if file.is_dir() else Path("files") / file.relative_to(REPOSITORY)


def _copy(file: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, path)


if __name__ == "__main__":
    raise SystemExit(main())
