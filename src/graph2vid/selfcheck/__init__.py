"""Every backend against every other, and against plain enumeration, on random cases."""

from __future__ import annotations

from graph2vid.selfcheck.cases import Case, make_case
from graph2vid.selfcheck.comparison import Mismatch, Report, selfcheck

__all__ = ["Case", "Mismatch", "Report", "make_case", "selfcheck"]
