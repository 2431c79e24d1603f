from pathlib import Path

import pytest

from tests.trace.profile.spaces import at, host, write
from tflint_gpu.trace.profile import read_profile


def stages(tmp_path: Path, lines):
    found = read_profile(write(tmp_path / "host.xplane.pb", host(lines)))
    return {(stage.pipeline, stage.chain): stage for stage in found.stages}


def test_own_time_is_less_the_inputs_on_the_same_thread(tmp_path: Path):
    found = stages(
        tmp_path,
        {
            "python": [at("train", 0, 1000, step_num=1)],
            "tf_data_iterator_get_next": [
                at("Iterator::Root", 0, 1000, id=1),
                at("Iterator::Root::BatchV2", 10, 900, id=2, parent_id=1),
                at("Iterator::Root::BatchV2::Map", 20, 300, id=3, parent_id=2),
                at("Iterator::Root::BatchV2::Map", 400, 300, id=3, parent_id=2),
                at("PyFunc:PyFunc", 410, 250),
            ],
        },
    )
    assert found[0, "Iterator::Root"].self_ms == pytest.approx(0.1)
    assert found[0, "Iterator::Root::BatchV2"].self_ms == pytest.approx(0.3)
    assert found[0, "Iterator::Root::BatchV2::Map"].self_ms == pytest.approx(0.6)
    assert found[0, "Iterator::Root::BatchV2::Map"].count == 2
    assert found[0, "Iterator::Root::BatchV2::Map"].op == "Map"


def test_a_parallel_stage_is_charged_for_its_function_and_not_for_waiting(tmp_path: Path):
    found = stages(
        tmp_path,
        {
            "tf_data_iterator_get_next": [at("Iterator::Root::ParallelMapV2", 0, 500, id=1)],
            "tf_data_iterator_resource": [
                at("Iterator::Root::ParallelMapV2::Range", 0, 5, id=2, parent_id=1),
                at("InstantiatedCapturedFunction::RunAsync", 6, 2, id=77),
            ],
            "tf_data_private_threadpool": [at("ExecutorState::Process", 10, 200, id=77)],
            "tf_Compute": [at("ExecutorState::Process", 10, 100, id=5)],
        },
    )
    assert found[0, "Iterator::Root::ParallelMapV2"].self_ms == pytest.approx(0.2)


def test_inputs_of_an_interleave_are_one_stage_and_epochs_one_pipeline(tmp_path: Path):
    found = stages(
        tmp_path,
        {
            "tf_data_iterator_get_next": [
                at("Iterator::Root", 0, 10, id=1),
                at("Iterator::Root", 100, 10, id=11),
                at("Iterator::Root", 300, 90, id=21),
            ],
            "tf_data_parallel_interleave_worker": [
                at("Iterator::Root::ParallelInterleaveV4[3]::TFRecord", 0, 5, id=2, parent_id=1),
                at("Iterator::Root::ParallelInterleaveV4[8]::TFRecord", 100, 5, id=12, parent_id=11),
                at("Iterator::Root::ParallelInterleaveV4[9]::TFRecord", 120, 5, id=13, parent_id=12345),
            ],
            "tf_data_iterator_resource": [at("Iterator::Root::Prefetch", 300, 1, id=22, parent_id=21)],
        },
    )
    # The longer wait comes first.
    assert found[0, "Iterator::Root::Prefetch"].count == 1
    assert found[1, "Iterator::Root::ParallelInterleaveV4[0]::TFRecord"].count == 3
    assert set(found) == {
        (0, "Iterator::Root"),
        (0, "Iterator::Root::Prefetch"),
        (1, "Iterator::Root"),
        (1, "Iterator::Root::ParallelInterleaveV4[0]::TFRecord"),
    }
