"""Write docs/operators.md.

python docs/table.py            # from what the last sweep found (tests/operators/verdicts.json)
python docs/table.py --sweep    # after a new sweep of every case: minutes
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from operators import page, sweep


def main() -> None:
    if "--sweep" in sys.argv[1:]:
        sweep.main()
    page.FILE.write_text(page.page(), encoding="utf-8")


if __name__ == "__main__":
    main()
