import gzip
import json
from pathlib import Path

import pytest

from tests.trace.profile.spaces import SHARED, at, gpu, host, needs_profiles, write
from tflint_gpu.errors import UserError
from tflint_gpu.trace.evidence import load, save
from tflint_gpu.trace.importer import describe, import_profile
from tflint_gpu.trace.profile.messages import message


@needs_profiles
@pytest.mark.parametrize(
    ("folder", "steps", "step_ms", "input_share", "device_ms", "launch_ms"),
    [
        ("v100x8-resnet-input-bound", 11, 1114, 0.814, 196, 2.8),
        ("v100x8-compute-bound", 11, 1805, 0.0002, 753, 327),
        ("xprof-demo", 9, 652, 0.689, 199, 2.1),
    ],
)
def test_figures_that_tensorflow_computed(folder, steps, step_ms, input_share, device_ms, launch_ms):
    evidence = import_profile(SHARED / folder).evidence
    mean = {name: sum(step.buckets[name] for step in evidence.steps) / steps for name in evidence.steps[0].buckets}
    assert len(evidence.steps) == steps
    assert sum(step.step_ms for step in evidence.steps) / steps == pytest.approx(step_ms, rel=0.001)
    assert evidence.share("input_wait") == pytest.approx(input_share, abs=0.001)
    assert mean["device_compute"] == pytest.approx(device_ms, rel=0.01)
    assert mean["launch"] == pytest.approx(launch_ms, rel=0.02)
    assert sum(mean.values()) == pytest.approx(step_ms, rel=0.001)


@needs_profiles
def test_16_bit_share_of_the_tables():
    def share(folder):
        return import_profile(SHARED / folder).evidence.facts["compute_16bit_share"]

    assert share("v100x8-compute-bound") == pytest.approx(0.46, abs=0.005)
    assert share("v100x8-resnet-input-bound") == 0


@needs_profiles
def test_every_gpu_of_a_profile_is_told_with_its_memory():
    evidence = import_profile(SHARED / "v100x8-bert").evidence
    used = {gpu.name: gpu for gpu in evidence.gpus if gpu.computes}
    assert len(evidence.gpus) == 8
    assert set(used) == {"GPU:4", "GPU:6"}
    assert used["GPU:4"].compute_ms == pytest.approx(14.8, abs=0.1)
    assert used["GPU:4"].collective_ms == 0
    assert evidence.memory is not None


@needs_profiles
def test_a_gpu_that_was_not_traced_is_not_an_idle_one():
    evidence = import_profile(SHARED / "tf22-no-xplane").evidence
    assert evidence.environment.device.kind == "gpu"
    assert not evidence.environment.device.traced
    assert evidence.gpu_busy_share is None
    assert evidence.steps == ()
    assert any("not traced" in note for note in evidence.notes)


@needs_profiles
def test_timelines_of_tensorflow_1():
    evidence = import_profile(SHARED / "tf1-timelines").evidence
    assert len(evidence.steps) == 2
    for step in evidence.steps:
        assert 0 < step.kernel_ms <= step.gpu_busy_ms < step.step_ms
        assert sum(step.buckets.values()) == pytest.approx(step.step_ms)


def test_stream_all_repeats_the_streams(tmp_path: Path):
    rows = {
        1: "/gpu:0/stream:all Compute",
        2: "/gpu:0/stream:7 Compute",
        3: "/gpu:0/memcpy Compute",
        4: "/cpu:0 Compute",
    }
    events = [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}} for pid, name in rows.items()
    ]
    for pid, start, length in [(1, 0, 100), (1, 500, 100), (2, 0, 100), (3, 500, 100), (4, 900, 100)]:
        events.append({"ph": "X", "pid": pid, "ts": start, "dur": length, "name": "MatMul"})
    (tmp_path / "run.json").write_text(json.dumps({"traceEvents": events}))
    (step,) = import_profile(tmp_path).evidence.steps
    assert step.gpu_busy_ms == pytest.approx(0.1)
    assert step.buckets["host"] == pytest.approx(0.1)
    assert step.step_ms == pytest.approx(1.0)


@needs_profiles
def test_every_damaged_file_is_refused_in_a_sentence():
    files = sorted((SHARED / "corrupt").iterdir())
    assert len(files) >= 6
    for file in files:
        with pytest.raises(UserError) as told:
            import_profile(file)
        assert file.name in str(told.value)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1, 2]", b'{"other": 1}', gzip.compress(b'{"traceEvents": [', mtime=0)[:-4]]
)
def test_json_that_is_no_timeline(tmp_path: Path, content: bytes):
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"x\.json"):
        import_profile(file)


def test_a_damaged_table(tmp_path: Path):
    file = tmp_path / "host.overview_page.pb"
    file.write_bytes(b"\xff\xff\xff")
    with pytest.raises(UserError, match="profiler table"):
        import_profile(file)


def test_a_table_of_a_tpu(tmp_path: Path):
    file = tmp_path / "host.input_pipeline.pb"
    file.write_bytes(message("InputPipeline")(hardware_type=b"TPU").SerializeToString())
    with pytest.raises(UserError, match="not a GPU profile"):
        import_profile(file)


def test_a_kernel_table_alone_says_nothing(tmp_path: Path):
    file = tmp_path / "host.kernel_stats.pb"
    file.write_bytes(b"")
    with pytest.raises(UserError, match="nothing to read"):
        import_profile(file)


def test_evidence_of_an_import_survives_the_disk_and_is_described(tmp_path: Path):
    traced = at("f", 0, 90, tf_function_call="traced-nonXla", tracing_count=4)
    marks = [at("train", 0, 100, step_num=1), at("train", 100, 100, step_num=2), traced]
    kernel = at("volta_s884gemm", 10, 40, tf_op="model/dense/MatMul:MatMul")
    write(tmp_path / "h.xplane.pb", host({"python": marks}), gpu({"Stream #1": [kernel]}))
    imported = import_profile(tmp_path)
    assert imported.evidence.functions[0].retraces_after_warmup == 1
    assert imported.evidence.window.steps == 2
    assert imported.evidence.kernels.tensor_core_share == 1
    save(imported.evidence, tmp_path / "evidence.json")
    assert load(tmp_path / "evidence.json") == imported.evidence
    text = describe(imported)
    assert "GPU:0" in text
    assert "MatMul" in text
    assert "f was traced in 1 of its 1 calls" in text
