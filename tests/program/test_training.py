"""Training runs, steps, roles of pipelines and the regions that code runs in."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, ops, trained
from tflint_gpu.program.views import Program

STEP = """
optimizer = tf.keras.optimizers.SGD()

def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) - y)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss
"""


def regions(program: Program, callee: str) -> list[str]:
    return [call.context.region for call in program.calls_to(callee)]


def test_fit_is_a_run_with_its_pipelines(read: Read) -> None:
    program = read(
        "model.fit(base.batch(32), validation_data=base.batch(64), epochs=2)\nmodel.predict(base.batch(8))\n"
    )
    (run,) = program.runs

    assert run.kind == "fit" and run.model is program.models[0]
    assert run.model.trained
    assert ops(run.pipeline) == ops(run.validation) == ["from_tensor_slices", "batch"]
    assert sorted(pipeline.role for pipeline in program.pipelines) == ["inference", "train", "validation"]


def test_fit_on_arrays_has_data_but_no_pipeline(read: Read) -> None:
    (run,) = read("model.fit(x, x, batch_size=32)\n").runs

    assert run.pipeline is None and run.call is not None
    assert run.call.constant("batch_size") == 32


def test_fit_inside_a_loop_knows_the_loop(read: Read) -> None:
    (run,) = read("for fold in range(5):\n    model.fit(base.batch(32))\n").runs

    assert run.loop is not None and run.loop.count == 5


@pytest.mark.parametrize(
    "built",
    [
        "tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(model(x)))",
        "tf.compat.v1.train.AdamOptimizer(0.1).minimize(loss=tf.reduce_mean(model(x)), global_step=step)",
        "o = tf.train.AdamOptimizer()\n    o.apply_gradients(o.compute_gradients(tf.reduce_mean(model(x))))",
        "v = tf.trainable_variables()\n    o.apply_gradients(zip(tf.gradients(tf.reduce_mean(x), v), v))",
    ],
)
def test_what_a_session_runs_is_no_step_of_python(read: Read, built: str) -> None:
    text = f"from elsewhere import step\no = tf.train.AdamOptimizer()\nfor width in range(30):\n    {built}\n"

    assert read(text).steps == []


@pytest.mark.parametrize(
    "step",
    [
        "o.minimize(lambda: tf.reduce_mean(model(x)), model.trainable_variables)",
        "with tf.GradientTape() as t:\n        loss = tf.reduce_mean(model(x))\n    o.minimize(loss, [], tape=t)",
        "f()",
    ],
)
def test_minimize_is_a_step(read: Read, step: str) -> None:
    graph = (
        "@tf.function\ndef f():\n    v = [w]\n    o.apply_gradients(zip(tf.gradients(tf.reduce_mean(x), v), v))\n"
    )
    text = f"o = tf.keras.optimizers.SGD()\nw = tf.Variable(1.0)\n{graph}\nfor i in range(30):\n    {step}\n"

    assert any(made.loop is not None for made in read(text).steps)


def test_loop_of_ones_own_is_a_run(read: Read) -> None:
    program = read(STEP + "for epoch in range(3):\n    for x, y in base.batch(32):\n        step(x, y)\n")
    (run,) = program.runs
    (made,) = program.steps

    assert run.kind == "loop" and run.step is made
    assert ops(run.pipeline) == ["from_tensor_slices", "batch"]
    assert made.eager and made.loop is run.loop
    assert [pipeline.role for pipeline in program.pipelines] == ["train"]


@pytest.mark.parametrize(
    "wrapped",
    [
        STEP.replace("def step", "@tf.function\ndef step"),
        STEP.replace("def step", "@tf.function(jit_compile=True)\ndef step"),
        STEP + "step = tf.function(step)\n",
        STEP + "inner = step\n@tf.function\ndef step(x, y):\n    return inner(x, y)\n",
        STEP + "import functools\nstep = functools.partial(tf.function, reduce_retracing=True)(step)\n",
    ],
)
def test_step_under_tf_function_is_not_eager(read: Read, wrapped: str) -> None:
    program = read(wrapped + "for x, y in base.batch(32):\n    step(x, y)\n")

    assert [step.eager for step in program.steps] == [False]
    assert trained(program) == [["from_tensor_slices", "batch"]]


def test_step_driven_by_next(read: Read) -> None:
    program = read(STEP + "it = iter(base.batch(32))\nfor i in range(100):\n    step(*next(it))\n")

    assert trained(program) == [["from_tensor_slices", "batch"]]


def test_train_step_of_a_model_is_compiled_by_fit(read: Read) -> None:
    program = read(
        """
class Net(tf.keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self(x) - y)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        print("traced")
        return {"loss": loss}

net = Net()
net.compile("adam")
net.fit(base.batch(32))
"""
    )

    assert [step.eager for step in program.steps] == [False]
    assert regions(program, "builtins.print") == ["train-step"]


def test_run_eagerly_makes_the_train_step_eager(read: Read) -> None:
    program = read(
        """
class Net(tf.keras.Model):
    def train_step(self, data):
        print("eager")
        return {}

net = Net()
net.compile("adam", run_eagerly=True)
net.fit(base.batch(32))
"""
    )

    assert [call.context.in_graph for call in program.calls_to("builtins.print")] == [False]


def test_regions_say_who_runs_the_code(read: Read) -> None:
    program = read(
        """
def loss(a, b):
    tf.print("loss")
    return a - b

class Net(tf.keras.Model):
    def call(self, x):
        tf.print("model")
        return x

class Watch(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        tf.print("batch")
    def on_epoch_end(self, epoch, logs=None):
        tf.print("epoch")

class Rows(tf.keras.utils.Sequence):
    def __getitem__(self, index):
        tf.print("rows")

def images():
    tf.print("generator")
    yield 1

def decode(x, y):
    tf.print("map")
    return x

net = Net()
net.compile("adam", loss=loss)
net.fit(base.map(decode).batch(32), callbacks=[Watch()])
net.fit(Rows())
net.fit(tf.data.Dataset.from_generator(images, tf.float32))
"""
    )
    found = {(call.args[0].value, call.context.region) for call in program.calls_to("tf.print")}  # type: ignore[attr-defined]

    assert found == {
        ("loss", "loss"),
        ("model", "model"),
        ("batch", "batch-callback"),
        ("epoch", "epoch-callback"),
        ("rows", "loader"),
        ("generator", "loader"),
        ("map", "dataset"),
    }


def test_loop_that_trains_nothing_shows_or_infers(read: Read) -> None:
    program = read(
        """
for x in base.take(1):
    print(x)
for x in base.batch(32):
    model.predict(x)
for x in base.batch(64):
    print(x)
"""
    )

    assert [pipeline.role for pipeline in program.pipelines] == ["display", "inference", "other"]
    assert not program.runs


def test_train_on_batch_in_a_loop_over_a_dataset(read: Read) -> None:
    program = read("for x, y in base.batch(32):\n    model.train_on_batch(x, y)\n")

    assert [run.kind for run in program.runs] == ["train_on_batch"]
    assert trained(program) == [["from_tensor_slices", "batch"]]


def test_strategy_of_a_run_is_the_scope_its_model_was_built_in(read: Read) -> None:
    program = read(
        """
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    net = tf.keras.Sequential([tf.keras.layers.Dense(8)])
    net.compile("adam", "mse")
net.fit(base.batch(32))
model.fit(base.batch(32))
"""
    )

    assert [run.strategy is not None for run in program.runs] == [True, False]


def test_device_scope_is_in_the_context(read: Read) -> None:
    program = read("with tf.device('/CPU:0'):\n    tf.add(x, x)\n")
    (call,) = program.calls_to("tf.add")
    scope = call.context.scope("device")

    assert scope is not None and scope.value.value == "/CPU:0"  # type: ignore[union-attr]


def test_function_that_nobody_calls_is_read_with_unknown_arguments(read: Read) -> None:
    program = read("def train(ds, size=32):\n    model.fit(base.batch(size))\n    model.fit(ds.batch(8))\n")

    assert trained(program) == [["from_tensor_slices", "batch"], []]
    (stage,) = [stage for _, stage in program.pipelines[0].stages_of("batch")]
    assert stage.call.argument("batch_size").soft  # type: ignore[union-attr]


def test_method_of_a_base_class_is_read_as_its_heir_runs_it(read: Read) -> None:
    program = read(
        """
class Job:
    def end(self, ds):
        return ds
    def run(self):
        model.fit(self.end(base.batch(32)))

class Ready(Job):
    def end(self, ds):
        return ds.prefetch(2)
"""
    )

    assert trained(program) == [["from_tensor_slices", "batch", "prefetch"]]


def test_unit_tests_leave_no_runs(read: Read) -> None:
    program = read(
        {
            "train.py": "def fit(ds):\n    model.fit(ds)\n",
            "tests/test_fit.py": "import tensorflow as tf\nfrom train import fit, base\nfit(base.batch(1))\n",
        }
    )

    assert trained(program) == [[]]
