"""What of a Keras model, its input and TensorFlow the what-if runs of a fit change, and how to put it back."""

from .python_input import is_pydataset


def state_of(model, given, tf):
    """Return what the arms of a fit may change of its model, its input `given` and TensorFlow."""
    return {
        "jit": jit_of(model),
        "steps": steps_of(model),
        "train_function": model.train_function,
        "all_eager": tf.config.functions_run_eagerly(),
        "eager": bool(getattr(model, "_run_eagerly", model.run_eagerly)),
        "workers": workers_of(given),
    }


def workers_of(given):
    """Return how many threads call a ``PyDataset`` of Keras 3, None for any other input."""
    return given.workers if is_pydataset(given) and hasattr(given, "workers") else None


def set_workers(given, count):
    """Have so many threads call a ``PyDataset``, where it has a say in it."""
    if count is not None:
        given.workers = count


def jit_of(model):
    """Return whether a model's step is compiled with XLA."""
    return bool(getattr(model, "jit_compile", None) or getattr(model, "_jit_compile", None))


def steps_of(model):
    """Return how many steps a model runs at one call of its step function."""
    if hasattr(model, "_steps_per_execution"):
        return int(model._steps_per_execution.numpy())
    return int(model.steps_per_execution)


def set_steps(model, count):
    """Have a model run so many steps at one call of its step function."""
    if hasattr(model, "_steps_per_execution"):
        model._steps_per_execution.assign(count)
    else:
        model.steps_per_execution = count
