"""A file that is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from hearth.memory.events.database import sync_directory


def write_whole(path: Path, content: bytes) -> None:
    """Whole or not at all, whatever is killed or loses its power."""
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_directory(path.parent)
