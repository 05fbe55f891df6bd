"""model.mlirbc, TOSA → model.vmfb: told.json {hardware}."""

import json
import subprocess
import sys
from pathlib import Path

TOLD = json.loads(Path("told.json").read_text(encoding="utf-8"))

command = [str(Path(sys.executable).parent / "torq-compile"), "model.mlirbc"]
subprocess.run([*command, f"--torq-hw={TOLD['hardware']}", "-o", "model.vmfb"], check=True)
