from __future__ import annotations

import pytest

from tflint_gpu.trace.chains import family, locate_stages
from tflint_gpu.trace.evidence import PipelineStage


def spot(line: int) -> dict[str, object]:
    return {"path": "train.py", "line": line, "cell": None, "function": ""}


CHAIN = [
    {"op": "BatchDataset", "spot": spot(9)},
    {"op": "MapDataset", "spot": spot(8)},
    {"op": "ShuffleDataset", "spot": spot(7)},
    {"op": "TensorSliceDataset", "spot": spot(6)},
]


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("ParallelMapV2", "map"),
        ("_ParallelMapDataset", "map"),
        ("MapDataset", "map"),
        ("BatchV2", "batch"),
        ("ParallelBatchDataset", "batch"),
        ("TensorSlice", "tensorslice"),
        ("Zip[0]", "zip"),
        ("MemoryCacheImpl", "cache"),
        ("ForeverRepeat", "repeat"),
        ("PrefetchDataset", "prefetch"),
        ("LegacyParallelInterleaveV2", "parallelinterleave"),
        ("ParallelInterleaveV4", "interleave"),
    ],
)
def test_family_forgets_versions(op: str, kind: str) -> None:
    assert family(op) == kind


def located(chain: str, *chains: list[dict[str, object]]) -> int | None:
    stage = PipelineStage(chain, chain.rpartition("::")[2], 1.0, 1)
    (found,) = locate_stages([stage], chains)
    return found.spot.line if found.spot else None


def test_stages_find_their_lines() -> None:
    assert located("Iterator::Root::BatchV2::ParallelMapV2::Shuffle", CHAIN) == 7
    assert located("Iterator::Root::BatchV2::ParallelMapV2", CHAIN) == 8


def test_what_the_runtime_put_in_has_no_line() -> None:
    assert located("Iterator::Root::Prefetch", CHAIN) is None
    assert located("Iterator::Root::Prefetch::BatchV2", CHAIN) == 9


def test_a_fused_stage_stands_at_its_map() -> None:
    assert located("Iterator::Root::Prefetch::MapAndBatch", CHAIN) == 8
    assert located("Iterator::Root::Prefetch::MapAndBatch::Shuffle::TensorSlice", CHAIN) == 6


def test_the_chain_that_matches_most_wins() -> None:
    other = [{"op": "MapDataset", "spot": spot(30)}]
    assert located("Iterator::Root::BatchV2::Map", other, CHAIN) == 8


def test_no_chain_gives_no_line() -> None:
    assert located("Iterator::Root::BatchV2") is None
