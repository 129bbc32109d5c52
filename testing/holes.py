"""Files that are mostly zeros, as those of an index with few records: only what is in them is read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_ZEROS = bytes(1 << 16)


def data_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The blocks that are not all zeros, and where each begins."""
    with path.open("rb", buffering=0) as file:
        size, at = os.fstat(file.fileno()).st_size, 0
        while (at := _next_data(file.fileno(), at, size)) < size:
            some = os.pread(file.fileno(), len(_ZEROS), at)
            if some != _ZEROS[: len(some)]:
                yield at, some
            at += len(some)


def copy_folder(source: Path, target: Path) -> None:
    """A copy with holes where there are zeros."""
    shutil.copytree(source, target, copy_function=_copy)


def _copy(source: str, target: str) -> None:
    with Path(target).open("wb", buffering=0) as file:
        file.truncate(Path(source).stat().st_size)
        for at, some in data_of(Path(source)):
            os.pwrite(file.fileno(), some, at)


def _next_data(descriptor: int, at: int, size: int) -> int:
    """Where the block of the next data begins; the end of the file where there are none."""
    try:
        found = os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError:
        return size
    return found - found % len(_ZEROS)
