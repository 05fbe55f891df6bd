"""Write docs/operators.md.

python docs/table.py                   # from what was found last (tests/operators/verdicts.json)
python docs/table.py --sweep           # after a sweep of every case: some hours for the large ones
python docs/table.py --sweep Pad Gelu  # after one of these operators
python docs/table.py --missing         # after one of what is not measured yet
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from operators import page, sweep


def main() -> None:
    flag, *operators = [*sys.argv[1:], ""]
    if flag in ("--sweep", sweep.MISSING):
        sweep.main([name for name in operators if name], missing=flag == sweep.MISSING)
    page.FILE.write_text(page.page(), encoding="utf-8")


if __name__ == "__main__":
    main()
