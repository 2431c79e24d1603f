"""What a trace of real scripts shows; each script is run once for all tests here."""

from __future__ import annotations

import subprocess
from hashlib import blake2b
from pathlib import Path

import pytest

from tests.trace.conftest import SCRIPTS, Tracing
from tflint_gpu.findings import Location
from tflint_gpu.trace.evidence import Evidence, load, save
from tflint_gpu.trace.script import find_script
from tflint_gpu.trace.session import TraceJob, longer, shortened

#: These start TensorFlow.
real = pytest.mark.trace


def line_of(name: str, text: str) -> int:
    """Return the first line of a script that holds `text`."""
    lines = (SCRIPTS / name).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def nothing_left() -> bool:
    """Say that no probe runs any more."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return not any("probe/start.py" in line and "tflint-gpu-" in line for line in listed.splitlines())


@pytest.fixture(scope="module")
def everything(traced: Tracing, tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, Path]:
    saved = tmp_path_factory.mktemp("saved")
    evidence, _ = traced("fit_with_everything.py", str(saved))
    return evidence, saved


NAME = "fit_with_everything.py"


def steps_of(evidence: Evidence) -> int:
    """Return the steps up to the profile, which a busy machine gets fewer of."""
    assert evidence.window is not None
    return evidence.window.warmup_steps + evidence.window.steps


@real
def test_fit_gives_a_full_window(everything: tuple[Evidence, Path]) -> None:
    evidence, _ = everything
    window = evidence.window
    assert window is not None
    assert (window.seen_as, window.batch_size, window.note) == ("fit", 32, "")
    # A machine that is busy elsewhere gets through fewer steps in the time that a phase has.
    assert 10 <= window.steps <= 20
    assert window.spot is not None
    assert (window.spot.path, window.spot.line) == (NAME, line_of(NAME, "model.fit"))
    assert len(evidence.steps) >= 10
    assert all(abs(sum(step.buckets.values()) - step.step_ms) < 0.05 * step.step_ms for step in evidence.steps)


@real
def test_nothing_of_the_users_is_written(everything: tuple[Evidence, Path]) -> None:
    evidence, saved = everything
    assert list(saved.iterdir()) == []
    assert "ModelCheckpoint" in evidence.muted


@real
def test_python_input_is_timed_by_line(everything: tuple[Evidence, Path]) -> None:
    evidence, _ = everything
    found = {each.kind: each for each in evidence.python_input}
    assert found["generator"].name == "rows"
    assert found["numpy_function"].name == "shift"
    spot = found["numpy_function"].spot
    assert spot is not None
    assert spot.line == line_of(NAME, "tf.numpy_function")
    assert found["generator"].calls >= 32 * steps_of(evidence)


@real
def test_stages_are_mapped_to_the_lines_that_made_them(everything: tuple[Evidence, Path]) -> None:
    evidence, _ = everything
    lines = {stage.spot.line for stage in evidence.pipelines if stage.spot is not None}
    assert line_of(NAME, "ds.map") in lines


@real
def test_callbacks_and_calls_inside_them(everything: tuple[Evidence, Path]) -> None:
    evidence, _ = everything
    (watcher,) = evidence.callbacks
    assert watcher.name == "Watcher"
    assert watcher.ms_per_step > 1.0
    (predict,) = (call for call in evidence.keras_calls if call.method == "predict")
    assert (predict.rows, predict.inside) == (8, "Watcher.on_train_batch_end")
    assert predict.calls >= steps_of(evidence)


@real
def test_executed_lines_and_hashes(everything: tuple[Evidence, Path]) -> None:
    evidence, _ = everything
    assert evidence.sources == {NAME: blake2b((SCRIPTS / NAME).read_bytes(), digest_size=16).hexdigest()}
    ran = evidence.executed[NAME]
    # In a generator, in a function that runs in TensorFlow's threads, and in one that AutoGraph rewrote.
    for text in ("yield left", "return np.asarray", "moved.set_shape", "self.model.predict"):
        assert line_of(NAME, text) in ran
    assert evidence.ran(Location(NAME, line_of(NAME, "model.save("))) is False


@real
def test_environment_and_facts(everything: tuple[Evidence, Path]) -> None:
    evidence, _ = everything
    assert evidence.environment.tensorflow
    assert evidence.environment.device.kind in ("cpu", "gpu")
    assert evidence.facts["parameters"] == 145
    assert evidence.facts["optimizer"] == "Adam"
    assert {placement.op for placement in evidence.placements} >= {"MatMul", "BiasAdd"}


@real
def test_evidence_survives_its_file(everything: tuple[Evidence, Path], tmp_path: Path) -> None:
    evidence, _ = everything
    save(evidence, tmp_path / "evidence.json")
    assert load(tmp_path / "evidence.json").window == evidence.window


@real
def test_a_short_loop_is_prolonged_and_its_retraces_counted(traced: Tracing) -> None:
    name = "short_loop.py"
    evidence, folder = traced(name, changes=("cached-batch", "batch-x2"), budget=30.0)
    window = evidence.window
    assert window is not None
    assert window.seen_as == "dataset loop"
    assert window.spot is not None
    assert window.spot.line == line_of(name, "for a, t in")
    assert window.steps >= 15
    assert "4 steps were too few" in window.note
    (step,) = (function for function in evidence.functions if function.name == "step")
    assert step.spot is not None
    assert step.spot.line in (line_of(name, "@tf.function"), line_of(name, "def step"))
    assert step.traces == step.calls == 4
    assert step.causes == ("a new tf.function object was made",)
    assert "tf.saved_model.save" in evidence.muted
    assert not (folder / "exported").exists()
    assert (folder / "kept" / "profile").is_dir()
    assert {result.change for result in evidence.what_if} == {"cached-batch", "batch-x2"}
    assert all(result.repeats >= 2 for result in evidence.what_if)


@real
def test_an_eager_loop_without_a_dataset(traced: Tracing) -> None:
    name = "agent.py"
    evidence, _ = traced(name)
    window = evidence.window
    assert window is not None
    assert window.seen_as == "step function"
    assert window.spot is not None
    assert window.spot.line in (line_of(name, "opt.apply_gradients"), line_of(name, "tape.gradient"))
    assert evidence.eager is not None
    assert evidence.eager.ops_per_step > 20
    lines = {spot.line for spot, _ in evidence.eager.spots}
    assert line_of(name, "opt.apply_gradients") in lines
    assert nothing_left()


@real
def test_one_cached_batch_shows_what_slow_input_costs(traced: Tracing) -> None:
    changes = ("cached-batch", "parallel-map", "cache", "batch-x4", "xla", "steps-per-execution-8")
    evidence, _ = traced("slow_input.py", changes=changes, budget=90.0)
    assert {result.change for result in evidence.what_if} == set(changes)
    cached = evidence.experiment("cache")
    assert cached is not None
    assert cached.gain
    result = evidence.experiment("cached-batch")
    assert result is not None
    assert result.speedup > 1.5
    assert result.gain


@real
def test_training_in_a_thread_is_seen(traced: Tracing) -> None:
    evidence, _ = traced("kinds.py", "thread", changes=())
    assert evidence.window is not None
    assert (evidence.window.seen_as, evidence.window.steps > 5) == ("fit", True)
    assert evidence.window.spot is not None
    assert evidence.window.spot.line == line_of("kinds.py", "threading.Thread(")


@real
def test_a_program_that_ends_without_a_step_is_profiled_by_time(traced: Tracing) -> None:
    evidence, _ = traced("kinds.py", "no-steps", changes=())
    assert evidence.window is not None
    assert evidence.window.seen_as == "time"
    assert any(each.op == "MatMul" for each in evidence.placements)


@real
def test_workers_eager_steps_and_callbacks_are_tried_in_the_same_process(traced: Tracing) -> None:
    evidence, _ = traced("kinds.py", "sequence", changes=("workers-4",), budget=60.0)
    workers = evidence.experiment("workers-4")
    assert workers is not None
    # Items sleep, and so do not share the cores: four threads make them faster on any machine.
    assert workers.speedup > 1.2
    changes = ("run-eagerly-off", "callbacks-off")
    evidence, _ = traced("kinds.py", "eager-fit", changes=changes, budget=60.0)
    assert {result.change for result in evidence.what_if} == set(changes)
    assert evidence.facts["run_eagerly"] is True


@real
def test_an_eager_step_is_tried_as_a_function_wherever_it_is_kept(traced: Tracing) -> None:
    for kind, seen_as in (("closure", "dataset loop"), ("method", "step function")):
        evidence, _ = traced("eager_steps.py", kind, changes=("tf-function",), budget=30.0)
        assert evidence.window is not None
        assert evidence.window.seen_as == seen_as
        (tried,) = evidence.what_if
        assert tried.gain
        # Sixty ops one by one against one call: any machine shows that.
        assert tried.speedup > 2
        assert [(spot.path, spot.function) for spot in tried.spots] == [("eager_steps.py", "step")]
        # A loop without a dataset has no batches of a known size.
        assert (tried.samples_per_second is None) == (kind == "method")


@real
def test_a_step_that_cannot_be_a_function_says_why(traced: Tracing) -> None:
    evidence, _ = traced("eager_steps.py", "needs_python", changes=("cached-batch", "tf-function"), budget=30.0)
    assert [result.change for result in evidence.what_if] == ["cached-batch"]
    (note,) = (note for note in evidence.notes if "tf-function" in note)
    assert note.startswith("what-if tf-function: does not compile:")
    assert "numpy" in note


def test_a_second_run_prolongs_loops_and_repeats_calls() -> None:
    job = TraceJob(find_script(str(SCRIPTS / "agent.py")))
    report = {"track": {"kind": "fit", "n": 3, "spot": None}, "tracks": [], "chains": [], "functions": []}
    assert longer(report, job)["extend"] is True
    report["track"] = {"kind": "step function", "n": 3, "spot": None}
    assert longer(report, job)["repeat"] is True
    report["track"] = {"kind": "optimizer", "n": 9, "spot": None}
    assert longer(report, job)["warmup"] == 1


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 20, 45, 1000])
def test_shortened_phases_fit_into_the_steps(count: int) -> None:
    phases = shortened(count, TraceJob(find_script(str(SCRIPTS / "agent.py"))))
    assert all(value >= 1 for value in phases.values())
    assert sum(phases.values()) <= max(count, 3)
