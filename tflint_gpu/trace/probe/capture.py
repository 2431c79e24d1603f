"""Entry of a child process: ``python capture.py JOB.json`` has the profiler services of live workers record.

It runs in the user's interpreter, whose TensorFlow brings the client. Every worker writes its own profile, into
the folder of the job as that worker sees it.
"""

import json
import sys


def capture(job):
    """Have all workers record at once; raises what TensorFlow raises where none of them did."""
    import tensorflow as tf

    profiler = tf.profiler.experimental
    # The time limit begins here: how long TensorFlow takes to load says nothing of the workers.
    open(job["begun"], "w").close()
    profiler.client.trace(
        ",".join("grpc://" + worker for worker in job["workers"]),
        job["folder"],
        job["duration_ms"],
        num_tracing_attempts=1,
        options=profiler.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=1),
    )


if __name__ == "__main__":
    # Python put this folder first on the path, where modules of the probe would hide others of the same name.
    del sys.path[0]
    with open(sys.argv[1], encoding="utf-8") as file:
        capture(json.load(file))
