"""The figures that others found in published profiles, found again."""

import pytest

from tests.trace.profile.spaces import SHARED, needs_profiles
from tflint_gpu.errors import UserError
from tflint_gpu.trace.profile import read_profile

pytestmark = needs_profiles

#: Profile -> busy share in % of every GPU that computes, as published beside the profiles.
BUSY = [
    ("v100x8-bert", [75, 70]),
    ("jax-rocm/jax08_attention", [12]),
    ("jax-rocm/jax08_elementwise", [38]),
    ("jax-rocm/jax08_gemm", [36]),
    ("jax-rocm/jax_conv_minimal", [23]),
    ("jax-rocm/jax_conv_minimal_08", [2.5, 2.9, 3.3, 3.6, 3.8, 3.7, 3.3, 3.9]),
    ("jax-rocm/fused_attention", [93.6]),
]


@pytest.mark.parametrize(("folder", "shares"), BUSY)
def test_busy_share_of_the_used_gpus(folder, shares):
    found = read_profile(SHARED / folder)
    assert [device.busy_share * 100 for device in found.used] == pytest.approx(shares, abs=1)


def test_bert_on_eight_v100():
    found = read_profile(SHARED / "v100x8-bert")
    assert [device.name for device in found.used] == ["/device:GPU:4", "/device:GPU:6"]
    assert all(19.5 < step.step_ms < 21.5 for step in found.steps)
    assert found.kernels.median_us == pytest.approx(12, abs=0.5)
    assert found.kernels.per_step == 665
    assert found.device.compute_capability == "7.0"
    assert len(found.devices) == 8
    for step in found.steps:
        assert sum(step.buckets.values()) == pytest.approx(step.step_ms)
        assert step.buckets["input_wait"] > 2


def test_copies_alone_do_not_make_a_gpu_used_but_are_shown():
    found = read_profile(SHARED / "jax-rocm" / "jax_conv_minimal")
    assert found.devices[0].busy_share * 100 == pytest.approx(3, abs=1)
    assert not found.devices[0].computes
    assert found.kernels.tensor_core_share is None


@pytest.mark.parametrize("kind", ["jit", "nojit"])
def test_steps_on_a_cpu(kind):
    found = read_profile(SHARED / "tf221-cpu" / kind)
    assert len(found.steps) == 5
    assert found.device.kind == "cpu"
    assert all(step.buckets["launch"] == 0 for step in found.steps)
    assert found.stages[1].chain == "Iterator::Root::MapAndBatch"
    assert found.functions[0].modes == {"notTraced-nonXla": 5}
    assert sum(step.buckets["device_compute"] for step in found.steps) > 5


def test_a_tpu_is_not_judged():
    with pytest.raises(UserError, match="not a GPU profile: it was recorded on a TPU v6 Lite"):
        read_profile(SHARED / "tpu")
