"""A table in CSV, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io

from graph2vid.export.parts import format_named, printable
from graph2vid.grounding import Grounding
from graph2vid.grounding.exporting import Exported, Film

COLUMNS = ("step", "id", "text", "start", "end", "confidence")


@format_named("csv", ".steps.csv")
def export_csv(grounding: Grounding, film: Film) -> Exported:
    """Write a row per segment, in order of time, then one without times per step that is not shown.

    Steps are numbered from 1; times are seconds.
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for segment in grounding.segments:
        sure = "" if segment.confidence is None else f"{segment.confidence:.4f}"
        times = (f"{segment.start:.3f}", f"{segment.end:.3f}")
        writer.writerow((segment.step + 1, printable(segment.id), printable(segment.text), *times, sure))
    for index in grounding.not_shown:
        step = grounding.flow.steps[index]
        writer.writerow((index + 1, printable(step.id), printable(step.text), "", "", ""))
    return Exported(table.getvalue())
