"""`python -m npumake VERB …` is `npumake VERB …`."""

from npumake.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
