"""An embedder by its name in the settings, or by the import path of a factory of one's own."""

from __future__ import annotations

from importlib import import_module

from hearth.memory.errors import BadInput
from hearth.memory.ports import Embedder

EMBEDDERS = {
    "fast": "hearth.memory.embed.use:UseEmbedder",
    "quality": "hearth.memory.embed.joint:quality_embedder",
}
"""Factory by name: `fast` needs nothing else, `quality` needs the extra of that name."""


def load_embedder(spec: str) -> Embedder:
    """Build the embedder that `spec` names: a key of `EMBEDDERS`, or `package.module:factory`.

    Raises BadInput where there is none of that name or its package is not installed.
    """
    module, _, factory = EMBEDDERS.get(spec, spec).partition(":")
    if not factory:
        raise BadInput("embedder", spec, f"one of {', '.join(EMBEDDERS)}, or package.module:factory")
    try:
        made: Embedder = getattr(import_module(module), factory)()
    except (ImportError, AttributeError) as error:
        raise BadInput("embedder", spec, f"an embedder that can be imported ({error})") from error
    return made


def holds_gil(embedder: Embedder) -> bool:
    """True if other threads stand still while it works; assumed where the embedder does not say."""
    return bool(getattr(embedder, "holds_gil", True))
