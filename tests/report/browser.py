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

SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
    "--allow-file-access-from-files",  # the frame of a narrow page reads it
)
DARK = "--blink-settings=preferredColorScheme=0"
ANSWER = re.compile(r'<pre id="answer">(.*?)</pre>', re.DOTALL)
CHECKS = Path(__file__).with_name("page_checks.js").read_text(encoding="utf-8")
FRAME = """<!doctype html><meta name="color-scheme" content="light dark"><body>
<iframe src="page.html{fragment}" width="{width}" height="900"></iframe>
<script>addEventListener("load", () => document.body.append(
  document.querySelector("iframe").contentDocument.getElementById("answer").cloneNode(true)));
</script></body>"""


def opened(
    page: str,
    folder: Path,
    script: str,
    width: int = 1280,
    is_dark: bool = False,
    fragment: str = "",
) -> tuple[Any, list[str]]:
    """What the body of `script` returns once the page has loaded, and what the console said.

    `fragment` is the end of its address, with `#`. The page stands in a frame of `width` pixels: a
    window is at least 500 wide. Skips where there is no Chromium.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here")
    asked = (
        "<script>{ const answer = document.createElement('pre'); answer.id = 'answer';"
        f"answer.textContent = JSON.stringify((() => {{ {script} }})());"
        "document.body.append(answer); }</script>"
    )
    before, end, after = page.rpartition("</body>")
    (folder / "page.html").write_text(before + asked + end + after, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(width=width, fragment=fragment), encoding="utf-8")
    switches = [*SWITCHES, *([DARK] if is_dark else []), f"--user-data-dir={folder / 'profile'}"]
    run = subprocess.run(
        [chromium, *switches, f"--window-size={width + 100},1000", "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        check=True,
    )
    console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    answer = ANSWER.search(run.stdout)
    assert answer is not None, console
    return json.loads(unescape(answer.group(1))), console
