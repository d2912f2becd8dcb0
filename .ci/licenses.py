"""List the licence of every package in this environment, as its own metadata tell it; one that tells none is an error.

What graph2vid itself brings with its extras is told apart from what only its development needs.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, distributions

# Words by which the text of a licence is known.
TEXTS = {
    "Permission is hereby granted, free of charge": "MIT",
    "Mozilla Public License": "MPL",
    "Apache License": "Apache-2.0",
    "Redistribution and use in source and binary forms": "BSD",
}
PLAIN = re.compile(r"[\w .,+()/-]{2,60}")


def main() -> int:
    found = {normal(dist.metadata["Name"]): dist for dist in distributions() if dist.metadata["Name"]}
    shipped = needed(found, "graph2vid", {"text", "media", "ocr", "embed", "learn", "plot", "export", "ray", "studio"})
    unknown = []
    for name, dist in sorted(found.items()):
        if name == "graph2vid":
            continue
        said = licence(dist)
        unknown += [name] if not said else []
        print(f"{name:32} {dist.version:16} {'extra' if name in shipped else 'dev':6} {said or '?'}")
    print(f"{len(found) - 1} packages; without a stated licence: {', '.join(unknown) or 'none'}")
    return 1 if unknown else 0


def licence(dist: Distribution) -> str:
    """Return what a package says: the SPDX expression, else classifiers, else the old field, else the text."""
    about = dist.metadata
    if about["License-Expression"]:
        return about["License-Expression"]
    classifiers = [c.split(" :: ")[-1] for c in about.get_all("Classifier", []) if c.startswith("License ::")]
    named = [name for name in classifiers if name != "OSI Approved"]
    if named:
        return " / ".join(named)
    first = (about["License"] or "").strip().split("\n")[0].strip()
    if PLAIN.fullmatch(first) and first.upper() != "UNKNOWN":
        return first
    for file in dist.files or ():
        if re.search(r"(?i)licen[cs]e|copying", file.name) and ".dist-info" in str(file):
            text = " ".join(file.locate().read_text("utf-8", "replace").split())
            return next((f"{name} (by its file {file.name})" for words, name in TEXTS.items() if words in text), "")
    return ""


def needed(found: dict[str, Distribution], name: str, extras: set[str]) -> set[str]:
    """Return what a package needs, directly or not, with some extras."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, frozenset(extras))]
    while waiting:
        name, wanted = waiting.pop()
        if name not in found or (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        for entry in found[name].requires or ():
            only_for = re.findall(r"extra == ['\"]([\w-]+)['\"]", entry)
            match = re.match(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?", entry)
            if match and (not only_for or wanted & set(only_for)):
                inner = frozenset(part.strip() for part in (match[2] or "").split(",") if part)
                waiting.append((normal(match[1]), inner))
    return {name for name, _ in seen}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
