"""A training step in a `tf.function`, which the programs of several benchmarks share; it asks for a `model`."""

STEP = """
optimizer = tf.keras.optimizers.SGD()

@tf.function
def step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

"""
