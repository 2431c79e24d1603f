"""Seeds: runs that are to be compared draw the same numbers, unless the script says otherwise."""

import random


def seed_python(seed):
    """Seed Python's own generator, which Keras seeds its layers from."""
    random.seed(seed)


def seed_numpy(numpy, seed):
    """Seed NumPy's global generator."""
    numpy.random.seed(seed)


def seed_tensorflow(tensorflow, seed):
    """Set TensorFlow's global seed, and with it the seeds of all ops that have none."""
    tensorflow.random.set_seed(seed)
