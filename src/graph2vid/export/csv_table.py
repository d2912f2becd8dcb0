"""A table in CSV, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io

from graph2vid.export.shared import cell, format_named, printable
from graph2vid.grounding import Exported, Film, Grounding

COLUMNS = ("step", "id", "text", "start", "end", "confidence", "order")


@format_named("csv", ".steps.csv")
def export_csv(grounding: Grounding, film: Film) -> Exported:
    """Write a row per segment, in order of time, then one without times per step that is not shown.

    Steps are numbered by their places in the procedure, from 1; ``order`` is their place in the order found. Times are
    seconds. A text that a spreadsheet would take for a formula has a ' before it, which our reader takes off again.
    """
    place = {step: at for at, step in enumerate(grounding.order, start=1)}
    steps = grounding.flow.steps
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(COLUMNS)

    def write(step: int, start: str, end: str, sure: str) -> None:
        named = (cell(printable(text)) for text in (steps[step].id, steps[step].text))
        writer.writerow((step + 1, *named, start, end, sure, place.get(step, "")))

    for segment in grounding.segments:
        sure = "" if segment.confidence is None else f"{segment.confidence:.4f}"
        write(segment.step, f"{segment.start:.3f}", f"{segment.end:.3f}", sure)
    for step in grounding.not_shown:
        write(step, "", "", "")
    return Exported(table.getvalue())
