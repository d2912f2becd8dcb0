"""``python -m benchmarks NAME [--only CASE,…] [--json FILE] [--markdown FILE]``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

NAMES = {
    "align": "alignment, beside a plain-Python loop and a scalar compiled scan",
    "tsort": "compiling procedures, beside the NumPy builder",
    "peers": "other packages on what they are made for, and brute force (the extra `peers`; `make peers`)",
    "soft": "soft costs and their gradients, beside a loop in torch (`learn`)",
    "extended": "repeats and durations, beside the plain kernel",
    "anytime": "procedures with too many ideals, until the answer is proven",
    "stream": "a clip of a running video, with what is believed of it",
    "parser": "parsers of procedures, and the learned one without the compiled kernels (`text`)",
    "gpu": "hard and soft costs on the GPU (needs torch and numpy alone)",
    "batch": "whole corpora, from Parquet to Parquet (`batch`, `ray`)",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them; return the exit status."""
    from graph2vid.errors import Graph2VidError

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure speed and memory on this machine, as ratios within one run.",
        epilog="\n".join(f"  {name:<10}{what}" for name, what in NAMES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME", help="what to measure, see below")
    parser.add_argument("--only", metavar="CASE,…", help="only these cases")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    given = parser.parse_args(arguments)
    measure = getattr(import_module(f"benchmarks.{given.name}"), f"bench_{given.name}")
    only = [case.strip() for case in given.only.split(",")] if given.only else None
    try:
        report = measure(only, progress=lambda case: print(f"measuring {case}", file=sys.stderr, flush=True))
    except Graph2VidError as error:
        print(f"benchmarks: error: {error}", file=sys.stderr)
        return 2
    if given.json:
        given.json.write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")
    if given.markdown:
        given.markdown.write_text(report.to_markdown(), encoding="utf-8")
    print(f"{report.to_markdown()}\n{report.seconds:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
