"""The report of a run: plain data that the parent turns into evidence."""

import hashlib
import os
import platform
import statistics
import sys
import time

from . import layers
from .clock import PLAIN, PROFILE, WARMUP
from .places import PROJECT

#: Steps at the beginning that trace functions, of the program as of its callbacks.
TRACING = 2


def report(run, status):
    """Return everything the watches of `run` saw, as JSON data."""
    track = run.clock.best()
    result = {
        "status": status,
        "phase": run.clock.phase,
        "environment": environment(run),
        "window_at": [run.window_at[0], time.time()] if run.window_at[0] else None,
        "sources": sources(run),
        "executed": run.lines.report(),
        "track": track_record(track),
        "tracks": [track_record(each) for each in run.clock.tracks.values()],
        "applied": run.experiment.applied,
        "steps_per_execution": run.steps_per_execution,
        "profile": run.job["profile"] if os.path.isdir(run.job["profile"]) else None,
        "profile_problem": run.profile.problem,
        "muted": sorted(run.mutes.names),
        "written": list(run.mutes.written),
        "processes": sorted(run.processes.names),
        "seconds_of_tensorflow": time.monotonic() - run.imported_at if run.imported_at else 0.0,
        "functions": [function_record(each, track) for each in run.functions.records.values() if each.calls],
        "python_input": python_input(run, track),
        "keras_calls": [call_record(each, track) for each in run.keras.report()],
        "callbacks": callbacks(run),
        "epoch_gaps": run.keras.epoch_gaps[:200],
        "epoch_steps": run.keras.epoch_steps[:200],
        "validation_ms": median(run.keras.validation.passes),
        "eager": run.eager.report(),
        "chains": chains(run, track),
        "losses": run.losses.report(),
        "bypassed": bool(run.replaced.contents) and run.processes.fresh,
        "placements": [],
        "notes": [],
    }
    if run.tensorflow is not None:
        result["facts"] = model_facts(run)
        if not run.job.get("lean"):
            place(run, result)
    return result


def track_record(track):
    """Return a track with its step times by phase."""
    if track is None:
        return None
    return {
        "kind": track.kind,
        "spot": track.spot,
        "trained": track.trained,
        "batch_size": track.batch_size,
        "n": len(track.steps),
        "warmup_ms": track.times(WARMUP),
        "plain_ms": track.times(PLAIN),
        "profiled_ms": track.times(PROFILE),
        "starts": [[at, track.steps[at][0]] for at in track.starts if at < len(track.steps)],
    }


def steps_of(track, phases):
    """Return how many steps of `phases` the track had."""
    return len(track.times(*phases)) if track is not None else 0


def python_input(run, track):
    """Return the input functions with milliseconds per step and calls in all."""
    found = []
    for record in list(run.python_input.records.values()):
        calls = sum(record["calls"].values())
        if calls:
            found.append(
                {
                    "kind": record["kind"],
                    "name": record["name"],
                    "spot": record["spot"],
                    "calls": calls,
                    "ms_per_step": input_ms(record, track),
                }
            )
    return found


def input_ms(record, track):
    """Return the time an input function takes for one step, None without steps.

    Input is made ahead of the steps that use it, so calls count over the whole run; their length is
    taken from after the warm-up, in which lines were being recorded.
    """
    steps = steps_of(track, (WARMUP, PLAIN, PROFILE))
    late = [phase for phase in (PLAIN, PROFILE) if record["calls"].get(phase)] or [WARMUP]
    calls = sum(record["calls"].get(phase, 0) for phase in late)
    if not steps or not calls:
        return None
    each = sum(record["ms"].get(phase, 0.0) for phase in late) / calls
    return each * sum(record["calls"].values()) / steps


def callbacks(run):
    """Return the user's callbacks with their time per step and per epoch."""
    return [
        {
            "name": record["name"],
            "spot": record["spot"],
            "ms_per_step": callback_ms(record["track"], record["batch"]),
            "ms_per_epoch": median(record["epochs"][:-1]),
        }
        for record in run.keras.callbacks.values()
    ]


def call_record(record, track):
    """Return what was seen of the calls from one line, with their share of the steps they were made in."""
    by_step = record.pop("by_step", {})
    inside = any(at >= TRACING for at in by_step)
    share = None
    if track is not None and inside:
        total = sum(ms for ms, _ in track.steps[TRACING:])
        share = min(1.0, sum(ms for at, ms in by_step.items() if at >= TRACING) / total) if total else None
    return {**record, "share": share}


def callback_ms(track, by_step):
    """Return the time per step of a callback, whose times `by_step` are known by the number of the step.

    It is the callback's share of the steps in which it was seen, of a median step: work at every tenth batch
    counts a tenth, and a long step is long on both sides. The first steps, which trace, are left out.
    """
    for phases in ((PLAIN,), (PLAIN, PROFILE), (WARMUP, PLAIN, PROFILE)):
        steps = [(at, ms) for at, (ms, phase) in enumerate(track.steps) if phase in phases and at >= TRACING]
        if len(steps) >= 5:
            break
    steps = steps or [(at, ms) for at, (ms, _) in enumerate(track.steps)]
    total = sum(ms for _, ms in steps)
    return sum(by_step.get(at, 0.0) for at, _ in steps) / total * median([ms for _, ms in steps]) if total else 0.0


def median(times):
    """Return the median of `times`, None without any."""
    return statistics.median(times) if times else None


def function_record(record, track):
    """Return what was seen of one function definition; `track` says how long the steps after the first were."""
    return {
        "name": record.name,
        "spot": record.spot,
        "caller": record.caller,
        "calls": record.calls,
        "traces": record.traces,
        "late": record.late,
        "objects": len(record.objects),
        "causes": record.causes,
        "jit": record.jit,
        "trains": record.trains,
        "trace_ms": sum(record.trace_ms) if record.trace_ms else None,
        "retrace_ms": per_plain_step(record.retrace_ms(), track),
    }


def per_plain_step(ms, track):
    """Return what `ms`, spent in all steps after the first ones, is of a mean plain step; None without steps.

    Work in profiled steps takes longer, as they do: its share of them is the same.
    """
    total = sum(each for each, _ in track.steps[TRACING:]) if track is not None else 0.0
    if not total:
        return None
    return ms / total * statistics.fmean(track.times(PLAIN) or [each for each, _ in track.steps[TRACING:]])


def chains(run, track):
    """Return the chains of the datasets that trained, the driver's first."""
    found = [track.chain] if track is not None and track.chain else []
    for other in run.clock.tracks.values():
        if other.chain and other.trained and other.chain not in found:
            found.append(other.chain)
    return found


def sources(run):
    """Return the blake2b-128 digest of every project file loaded, by path."""
    found = {}
    names = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    names.add(run.job["script"])
    for name in names:
        if not isinstance(name, str) or not name.endswith((".py", ".ipynb")):
            continue
        if run.places.kind(name) == PROJECT and os.path.isfile(name):
            with open(name, "rb") as file:
                found[run.places.path(name)] = hashlib.blake2b(file.read(), digest_size=16).hexdigest()
    return found


def environment(run):
    """Return versions and devices."""
    tf = run.tensorflow
    found = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    if tf is None:
        return found
    found["tensorflow"] = tf.__version__
    found["cuda_build"] = bool(tf.test.is_built_with_cuda())
    for keras in run.keras_modules:
        found["keras"] = getattr(keras, "__version__", None) or tf.__version__
        backend = getattr(getattr(keras, "config", None), "backend", None)
        found["backend"] = backend() if callable(backend) else "tensorflow"
    gpus = tf.config.list_logical_devices("GPU")
    found["gpus"] = [device_details(tf, gpu) for gpu in tf.config.list_physical_devices("GPU")] if gpus else []
    return found


def device_details(tf, device):
    """Return name and compute capability of a GPU."""
    try:
        details = tf.config.experimental.get_device_details(device)
    except Exception:
        details = {}
    capability = details.get("compute_capability")
    return {
        "name": details.get("device_name") or device.name,
        "compute_capability": ".".join(str(each) for each in capability) if capability else None,
    }


def model_facts(run):
    """Return what a judge may ask about models, precision and the step; every fact may be missing."""
    found = {"input_restarted": True} if run.input_restarted else {}
    found["retraced"] = sum(each.late for each in run.functions.records.values())
    if run.keras.models:
        model = run.keras.models[-1]
        for name, read in (
            ("parameters", lambda: int(model.count_params())),
            ("jit", lambda: bool(model.jit_compile)),
            ("run_eagerly", lambda: bool(model.run_eagerly) or run.tensorflow.config.functions_run_eagerly()),
            ("optimizer", lambda: type(model.optimizer).__name__),
            ("optimizer_variables", lambda: len(variables_of(model.optimizer))),
            ("layers", lambda: len(model.layers)),
            ("keras_auto_jit", lambda: layers.keras_would_jit(model)),
        ):
            note(found, name, read)
    trains = [record for record in run.functions.records.values() if record.trains and record.spot]
    if trains and "jit" not in found:
        found["jit"] = any(record.jit for record in trains)
    for keras in run.keras_modules:
        note(found, "mixed_precision", lambda keras=keras: policy(keras))
        note(found, "floatx", lambda keras=keras: keras.backend.floatx())
    note(found, "replicas", lambda: replicas(run))
    if run.tensorflow.config.list_physical_devices("GPU"):
        note(found, "visible_gpus", lambda: len(run.tensorflow.config.list_logical_devices("GPU")))
        note(found, "peak_memory_bytes", lambda: peak_memory(run.tensorflow))
    return found


def note(found, name, read):
    """Add a fact where it can be read."""
    try:
        found[name] = read()
    except Exception:
        return


def variables_of(optimizer):
    """Return an optimizer's variables, which were a method in older versions."""
    variables = optimizer.variables
    return variables() if callable(variables) else variables


def policy(keras):
    """Return the name of the global precision policy."""
    mixed = keras.mixed_precision
    read = getattr(mixed, "global_policy", None) or mixed.dtype_policy
    return read().name


def replicas(run):
    """Return the replicas of the strategy that the last model trains under."""
    return int(run.keras.models[-1].distribute_strategy.num_replicas_in_sync)


def peak_memory(tf):
    """Return the most bytes that TensorFlow had in use on a GPU at once, since the program began."""
    gpus = range(len(tf.config.list_logical_devices("GPU")))
    return max(int(tf.config.experimental.get_memory_info("GPU:%d" % gpu)["peak"]) for gpu in gpus)


def place(run, result):
    """Add where the ops of every traced graph run; without it the evidence only lacks them."""
    from . import placement

    places = run.places
    trains, functions = run.functions.concrete_functions()
    training = {id(function) for function in trains}
    try:
        found = placement.collect(functions, places.is_project, lambda function: id(function) in training)
        for record in found:
            line = record["line"]
            record["spot"] = places.spot_of(record["path"], line, record["function"]) if line else None
        result["placements"] = found
    except Exception as problem:
        result["notes"].append("placements are missing: %s: %s" % (type(problem).__name__, problem))
