"""graph2vid's own JSON: nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

from graph2vid.export.shared import format_named
from graph2vid.grounding import Exported, Film, Grounding, is_url


@format_named("json", ".grounding.json", "video")
def export_json(grounding: Grounding, film: Film) -> Exported:
    """Write the result file that ``graph2vid ground -o`` writes."""
    document = grounding.to_json()
    if film.name:  # in full, since nobody knows yet where the file will lie
        document["video"] = film.name if is_url(film.name) else str(Path(film.name).resolve())
    return Exported(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
