"""``python -m graph2vid``: the command line."""

from graph2vid.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
