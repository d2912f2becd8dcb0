"""Make the pictures of the documentation with the product itself: ``python docs/pictures.py``."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from graph2vid import sample
from graph2vid._files import write_text
from graph2vid.grounding.timeline import print_timeline

ASSETS = Path(__file__).parent / "assets"

# Rich's picture of a terminal, without the fonts that it would fetch from elsewhere.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> None:
    """Draw the sample's flow graph and its grounding."""
    bundled = sample.load()
    write_text(ASSETS / "pancakes.svg", bundled.flow.to_svg())
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    graph, _ = sample.ground_sample(bundled)
    print_timeline(graph.grounding, console)
    picture = console.export_svg(title="graph2vid demo", code_format=FORMAT, unique_id="demo")
    write_text(ASSETS / "demo.svg", picture)


if __name__ == "__main__":
    main()
