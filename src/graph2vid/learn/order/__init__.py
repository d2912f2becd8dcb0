"""Training the network that weighs pairs of steps (torch)."""

from __future__ import annotations

from graph2vid.learn.order.order_training import (
    OrderedProcedure,
    OrderTrainingOptions,
    procedures_in,
    train_order,
)

__all__ = ["OrderTrainingOptions", "OrderedProcedure", "procedures_in", "train_order"]
