"""Learning from procedures: losses and training (torch)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph2vid.learn.losses import ClusteringLoss, DropDTWLoss, GraphDropDTWLoss, LossOptions, ProcedureLoss
    from graph2vid.learn.operator import SoftOptions, posteriors, soft_cost

_OPERATOR = ("SoftOptions", "posteriors", "soft_cost")

__all__ = ["ClusteringLoss", "DropDTWLoss", "GraphDropDTWLoss", "LossOptions", "ProcedureLoss"]
__all__ += ["SoftOptions", "posteriors", "soft_cost"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import torch when one of the names is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'graph2vid.learn' has no attribute {name!r}")
    try:
        return getattr(import_module(f"graph2vid.learn.{'operator' if name in _OPERATOR else 'losses'}"), name)
    except ImportError as error:
        if error.name != "torch":
            raise
        from graph2vid.errors import MissingDependencyError

        raise MissingDependencyError("learning needs torch", extra="learn") from error
