"""A page opened in a real Chromium without a window, as a file; no network, no profile kept."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

SWITCHES = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")
ANSWER = re.compile(r'<pre id="answer">(.*?)</pre>', re.DOTALL)


def opened(page: str, folder: Path, script: str) -> tuple[Any, list[str]]:
    """What the body of `script` returns once the page has loaded, and what the console said.
    Skips where there is no Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here")
    asked = (
        "<script>{ const answer = document.createElement('pre'); answer.id = 'answer';"
        f"answer.textContent = JSON.stringify((() => {{ {script} }})());"
        "document.body.append(answer); }</script>"
    )
    file = folder / "page.html"
    before, end, after = page.rpartition("</body>")
    file.write_text(before + asked + end + after, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    run = subprocess.run(
        [chromium, *SWITCHES, profile, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
    )
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    answer = ANSWER.search(run.stdout)
    assert answer is not None, console
    return json.loads(unescape(answer.group(1))), console
