"""model.mlirbc, TOSA → model.vmfb: options.json {hardware}."""

import json
import subprocess
import sys
from pathlib import Path

OPTIONS = json.loads(Path("options.json").read_text(encoding="utf-8"))

command = [str(Path(sys.executable).parent / "torq-compile"), "model.mlirbc"]
subprocess.run([*command, f"--torq-hw={OPTIONS['hardware']}", "-o", "model.vmfb"], check=True)
