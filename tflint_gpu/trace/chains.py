"""Maps the stages of a rewritten tf.data iterator chain back to the lines that the user wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tflint_gpu.trace.evidence import PipelineStage, Spot

#: What a fused stage stands for, outermost first.
_FUSED = {"mapandbatch": ("batch", "map"), "shuffleandrepeat": ("shuffle", "repeat")}

#: Iterators that carry another name than the dataset they are of.
_ALIASES = {
    "memorycache": "cache",
    "memorycacheimpl": "cache",
    "filecache": "cache",
    "foreverrepeat": "repeat",
    "finiterepeat": "repeat",
    "finitetake": "take",
    "finiteskip": "skip",
    "fromtensor": "tensor",
}


def family(op: str) -> str:
    """Return the kind of a stage whatever its version: ``ParallelMapV2`` and ``MapDataset`` are both ``map``."""
    op = re.sub(r"\[\d+\]", "", op)
    op = re.sub(r"(Dataset)?(V\d+)?$", "", op.removeprefix("_"))
    kind = op.removeprefix("Parallel").removeprefix("Legacy").lower()
    return _ALIASES.get(kind, kind)


def locate_stages(
    stages: Sequence[PipelineStage], chains: Iterable[Sequence[dict[str, Any]]]
) -> tuple[PipelineStage, ...]:
    """Return `stages` with the user's line where a chain of datasets, recorded when it was built, explains it.

    Each chain lists the stages from the end to the sources: ``{"op", "spot"}``.
    """
    chains = [chain for chain in chains if chain]
    return tuple(_located(stage, chains) for stage in stages)


def _located(stage: PipelineStage, chains: list[Sequence[dict[str, Any]]]) -> PipelineStage:
    path = [family(part) for part in stage.chain.split("::")[2:]]
    best: tuple[int, dict[str, Any] | None] = (0, None)
    for chain in chains:
        matched, spot = _walk(path, chain)
        if spot is not None and matched > best[0]:
            best = (matched, spot)
    return stage if best[1] is None else replace(stage, spot=Spot(**best[1]))


def _walk(path: list[str], chain: Sequence[dict[str, Any]]) -> tuple[int, dict[str, Any] | None]:
    """Follow `path` from the end of the chain; return how much of it matched, and the spot of its last part.

    What the runtime put in (a prefetch, a model stage) matches nothing and is passed over, and so are stages of
    the chain that it took out; a part that lies nowhere further down has no spot.
    """
    position, matched = 0, 0
    spot: dict[str, Any] | None = None
    for part in path:
        spot = None
        for wanted in _FUSED.get(part, (part,)):
            found = next((at for at in range(position, len(chain)) if family(chain[at]["op"]) == wanted), None)
            if found is not None:
                position, matched, spot = found + 1, matched + 1, chain[found]["spot"]
    return matched, spot
