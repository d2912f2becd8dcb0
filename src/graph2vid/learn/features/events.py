"""Files of scalars that TensorBoard reads; written here, so that training needs no package for it."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path
from typing import BinaryIO

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed


def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _crc_table()


def _masked_crc(data: bytes) -> bytes:
    """Return the checksum of a record: CRC-32C, turned and shifted as the format asks."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _number(value: int) -> bytes:
    """Return a whole number from 0 on in groups of seven bits."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _nested(field: int, data: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(data)) + data


class EventFile:
    """One file of events in a folder, added to and flushed event by event.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns():020d}.{socket.gethostname()}.{os.getpid()}"
        self._file: BinaryIO = (folder / name).open("xb")
        self._add(b"", version=b"brain.Event:2")

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Add one number."""
        of_tag = _nested(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
        self._add(b"\x10" + _number(step) + _nested(5, _nested(1, of_tag)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _add(self, content: bytes, version: bytes | None = None) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + content
        event += b"" if version is None else _nested(3, version)
        length = struct.pack("<Q", len(event))
        self._file.write(length + _masked_crc(length) + event + _masked_crc(event))
        self._file.flush()
