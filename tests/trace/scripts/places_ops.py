"""Trace a step with ops of every kind of placement and print the probe's records as JSON."""

import json
import sys

import numpy as np
import tensorflow as tf

sys.path.insert(0, sys.argv[1])
from tflint_gpu.trace.probe import layers, placement  # noqa: E402


def mine(filename):
    return filename == __file__


layers.watch_layers(tf.keras.layers.Layer, mine)
layers.watch_compile(tf.keras.Model)


class Sharpen(tf.keras.layers.Layer):
    def call(self, images):
        return tf.image.resize(images, [16, 16], method="bicubic")  # in a layer


class Label(tf.keras.layers.Layer):
    def call(self, images):
        text = tf.strings.length(tf.as_string(images))  # strings
        return images + tf.cast(text, tf.float32)


def build(**options):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((12, 12, 3)),
            tf.keras.layers.Conv2D(4, 3),
            Sharpen(),
            tf.keras.layers.Resizing(8, 8, interpolation="bicubic"),  # built-in layer
            Label(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse", **options)
    return model


model = build()
images = tf.data.Dataset.from_tensors(np.ones((4, 12, 12, 3), "float32"))
images = images.map(lambda x: x + tf.cast(tf.strings.length(tf.as_string(x)), tf.float32))


@tf.function
def step(images):
    with tf.GradientTape() as tape:
        result = model(images, training=True)
        if tf.reduce_sum(result) > 0:
            result += tf.image.resize(images, [1, 1], method="bicubic")[:, 0, 0, :1]  # in a branch
        result = tf.numpy_function(np.sin, [result], tf.float32) * 0 + result  # Python
        with tf.device("/CPU:0"):
            scores = tf.matmul(result, tf.ones([1, 600]))  # asked
        rows = tf.map_fn(tf.nn.softmax, result)  # a loop
        scores += tf.reduce_mean(rows)
        shapes = tf.shape(images)[0] * 2 + tf.reduce_prod(tf.shape(images)[1:])
        loss = tf.reduce_mean(scores) + tf.cast(shapes, tf.float32)
    return tape.gradient(loss, model.trainable_variables)


@tf.function(jit_compile=True)
def compiled(x):
    return tf.random.shuffle(x)


placement.has_gpu = lambda: True  # else nothing is recorded: there would be nothing to learn
placement.start_recording()
for batch in images:
    step(batch)
shape = tf.TensorSpec((4, 12, 12, 3))
traces = [step.get_concrete_function(shape), step.get_concrete_function(tf.TensorSpec((None, 12, 12, 3)))]
inputs = tf.keras.Input((12, 12, 3))
enlarge = tf.keras.layers.Resizing(16, 16, interpolation="bicubic", name="enlarge")
functional = tf.keras.Model(inputs, enlarge(inputs))  # called here


@tf.function
def apply(images):
    return functional(images)


traces.append(apply.get_concrete_function(shape))
sequence = tf.keras.Input((10, 8))
recurrent = tf.keras.layers.GRU(4, return_sequences=True)(sequence)  # first of two
recurrent = tf.keras.layers.GRU(4)(recurrent)  # second of two
two = tf.keras.Model(sequence, recurrent)


@tf.function
def unroll(rows):
    return two(rows)


traces.append(unroll.get_concrete_function(tf.TensorSpec((4, 10, 8))))
dataset = images._functions()[0].function if hasattr(images, "_functions") else None
functions = [*traces, compiled.get_concrete_function(tf.TensorSpec((64,)))]
if hasattr(dataset, "graph"):
    functions.append(dataset)
ran = placement.collect(functions, mine, lambda f: f in traces)
records = placement.collect(functions, mine, lambda f: f in traces)
jits = [layers.keras_would_jit(m) for m in (model, build(jit_compile=False), build(jit_compile=True))]
print(json.dumps({"records": records, "ran": ran, "jits": jits, "unwatched": layers.keras_would_jit(object())}))
