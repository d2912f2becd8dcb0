"""Stretches of speech recognised side by side: each on a processor of its own, the words' times one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from faster_whisper import BatchedInferencePipeline, WhisperModel


class Stretches(BatchedInferencePipeline):  # type: ignore[misc]
    """Recognises the stretches of a window, several at a time.

    What is found is what a batch of one finds, in the same order: a stretch neither waits for the longest of its batch,
    nor do the threads of one small product of matrices wait for each other.

    Parameters
    ----------
    model : WhisperModel
        Loaded with ``num_workers=workers``.
    workers : int
        How many stretches are recognised at a time.
    """

    def __init__(self, model: WhisperModel, workers: int) -> None:
        super().__init__(model)
        self._workers = workers
        self._recognised: Any = None

    def forward(self, features: Any, tokenizer: Any, chunks_metadata: Sequence[Any], options: Any) -> Iterator[Any]:
        """Yield what was recognised, stretch by stretch, as it is ready."""

        def recognise(one: Any) -> Any:
            return BatchedInferencePipeline.generate_segment_batched(self, one[None], tokenizer, options)

        pool = ThreadPoolExecutor(self._workers, "graph2vid-speech")
        try:
            for one, metadata, found in zip(features, chunks_metadata, pool.map(recognise, features), strict=True):
                self._recognised = found
                yield from super().forward(one[None], tokenizer, [metadata], options)
        finally:
            pool.shutdown(cancel_futures=True)

    def generate_segment_batched(self, features: Any, tokenizer: Any, options: Any) -> Any:
        """Return what was recognised already."""
        return self._recognised
