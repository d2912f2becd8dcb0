"""Packages that only whole corpora need, imported when they are used."""

from __future__ import annotations

from typing import Any

from graph2vid.errors import MissingDependencyError


def arrow() -> Any:
    """Return the module pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("batches need the package pyarrow", extra="batch") from None
    return pyarrow


def compute() -> Any:
    """Return the module pyarrow.compute."""
    arrow()
    import pyarrow.compute

    return pyarrow.compute


def parquet() -> Any:
    """Return the module pyarrow.parquet."""
    arrow()
    import pyarrow.parquet

    return pyarrow.parquet


def ray_data() -> tuple[Any, Any]:
    """Return the modules ray and ray.data."""
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingDependencyError("the engine ray needs the package ray", extra="ray") from None
    return ray, ray.data
