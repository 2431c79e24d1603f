"""Profiles of several hosts whose every microsecond is known: who waits for whom, what input is thrown away."""

from pathlib import Path

import pytest

from tests.trace.profile.spaces import at, gpu, host, write
from tflint_gpu.trace.profile import read_profile
from tflint_gpu.trace.usage import HostUse, straggler

DEEP = "Iterator::Root::Prefetch::Shard::Rebatch::Map"


def worker(path: Path, input_us: float, exchange_us: float, shard: bool = False, *planes: bytes) -> Path:
    """Write the profile of a host with four steps of 1 ms: a wait for input, then an exchange with the others."""
    marks, waits, exchanges, stages = [], [], [], []
    for number in range(4):
        start = number * 1000.0
        marks.append(at("train", start, 1000, step_num=number))
        waits.append(at("IteratorGetNextOp::DoCompute", start, input_us))
        exchanges.append(at("sgd/CollectiveReduceV2:CollectiveReduceV2", start + input_us, exchange_us))
        if shard:
            chains = (DEEP.rpartition("::Rebatch")[0], DEEP.rpartition("::Map")[0])
            stages.append(at(chains[0], start, 800, id=number * 10))
            for half in (0, 1):
                below = {"id": number * 10 + 1 + half, "parent_id": number * 10}
                stages.append(at(chains[1], start + 400 * half, 300, **below))
    lines = {"python": marks, "tf_data_iterator_get_next": waits, "collective_ops": exchanges, "tf_data_x": stages}
    return write(path, host(lines), *planes)


def test_the_host_that_waits_least_for_others_is_the_one_they_wait_for(tmp_path: Path):
    worker(tmp_path / "a_6009.xplane.pb", 100, 700)
    worker(tmp_path / "b_6009.xplane.pb", 700, 100)
    found = read_profile(tmp_path)
    first, second = found.hosts
    assert (first.name, second.name) == ("a:6009", "b:6009")
    assert (first.steps, first.step_ms, first.input_ms, first.collective_ms) == (4, 1.0, 0.1, 0.7)
    assert second.own_ms == pytest.approx(0.9)
    late = straggler(found.hosts)
    assert late is not None
    assert (late.name, late.share) == ("b:6009", pytest.approx(0.6))
    assert len(found.steps) == 8


def test_one_host_is_no_comparison(tmp_path: Path):
    worker(tmp_path / "a_6009.xplane.pb", 100, 700)
    assert read_profile(tmp_path).hosts == ()


def test_hosts_that_do_not_exchange_do_not_wait_for_each_other():
    apart = (HostUse("a", 4, 1.0, 0.0, 0.1, 0.0), HostUse("b", 4, 2.0, 0.0, 0.1, 0.0))
    assert straggler(apart) is None
    assert straggler((HostUse("a", 0), HostUse("b", 4, 2.0, 0.0, 0.1, 0.5))) is None


def test_input_that_other_workers_keep_is_thrown_away(tmp_path: Path):
    worker(tmp_path / "a_6009.xplane.pb", 100, 700, shard=True)
    worker(tmp_path / "b_6009.xplane.pb", 100, 700)
    first, second = read_profile(tmp_path).hosts
    # Asked once, the shard asked twice: half of 2 × 0.3 ms a step is for the other worker.
    assert (first.shards, first.thrown_away_ms) == (2, pytest.approx(0.3))
    assert (second.shards, second.thrown_away_ms) == (None, None)


def test_a_shard_counts_in_whichever_pipeline_it_is(tmp_path: Path):
    lines = {
        "python": [at("train", number * 1000, 1000, step_num=number) for number in range(4)],
        "tf_data_a": [at("Iterator::Root::Generator", number * 1000, 900, id=100 + number) for number in range(4)],
        "tf_data_b": [],
    }
    for number in range(4):
        lines["tf_data_b"].append(at("Iterator::Root::Shard", number * 1000, 200, id=number * 10))
        for half in (0, 1):
            below = {"id": number * 10 + 1 + half, "parent_id": number * 10}
            lines["tf_data_b"].append(at("Iterator::Root::Shard::Map", number * 1000 + 100 * half, 80, **below))
    for name in "ab":
        write(tmp_path / f"{name}_6009.xplane.pb", host(lines))
    for each in read_profile(tmp_path).hosts:
        assert (each.shards, each.thrown_away_ms) == (2, pytest.approx(0.08))


def test_hosts_without_steps_are_not_compared(tmp_path: Path):
    for name in "ab":
        write(tmp_path / f"{name}_6009.xplane.pb", host({"python": [at("work", 0, 100)]}))
    assert read_profile(tmp_path).hosts == ()


def test_gpus_carry_the_name_of_their_host(tmp_path: Path):
    kernels = gpu({"Stream #1": [at("gemm", number * 1000 + 100, 500) for number in range(4)]})
    worker(tmp_path / "a_6009.xplane.pb", 50, 0, False, kernels)
    worker(tmp_path / "node12.xplane.pb", 50, 0, False, kernels)
    found = read_profile(tmp_path)
    assert [device.use.name for device in found.devices] == ["a:6009 GPU:0", "node12 GPU:0"]
    alone = read_profile(tmp_path / "a_6009.xplane.pb")
    assert [device.use.name for device in alone.devices] == ["GPU:0"]


def test_on_gpus_without_nccl_the_hosts_exchange(tmp_path: Path):
    kernels = gpu({"Stream #1": [at("gemm", number * 1000 + 100, 100) for number in range(4)]})
    file = worker(tmp_path / "a_6009.xplane.pb", 100, 700, False, kernels)
    for step in read_profile(file).steps:
        assert step.buckets["collectives"] == pytest.approx(0.6)
        assert step.buckets["device_compute"] == pytest.approx(0.1)
