"""Learning from procedures: losses and training (torch)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Name → module; torch is imported when one of them is first used.
_PUBLIC = {
    "ClusteringLoss": "graph2vid.learn.losses",
    "DropDTWLoss": "graph2vid.learn.losses",
    "GraphDropDTWLoss": "graph2vid.learn.losses",
    "LossOptions": "graph2vid.learn.losses",
    "ProcedureLoss": "graph2vid.learn.losses",
    "SoftOptions": "graph2vid.learn.operator",
    "posteriors": "graph2vid.learn.operator",
    "soft_cost": "graph2vid.learn.operator",
}

if TYPE_CHECKING:
    from graph2vid.learn.losses import ClusteringLoss, DropDTWLoss, GraphDropDTWLoss, LossOptions, ProcedureLoss
    from graph2vid.learn.operator import SoftOptions, posteriors, soft_cost

__all__ = [
    "ClusteringLoss",
    "DropDTWLoss",
    "GraphDropDTWLoss",
    "LossOptions",
    "ProcedureLoss",
    "SoftOptions",
    "posteriors",
    "soft_cost",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'graph2vid.learn' has no attribute {name!r}")
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        if error.name != "torch":
            raise
        from graph2vid.errors import MissingDependencyError

        raise MissingDependencyError("learning needs torch", extra="learn") from error
