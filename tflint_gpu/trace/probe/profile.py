"""TensorFlow's profiler over the window of steps."""

import sys


class Profile:
    """Starts and stops one profile in `folder`; a profiler that fails costs the profile, not the trace."""

    def __init__(self, folder):
        self.folder = folder
        self.on = False
        self.problem = None

    def start(self):
        """Begin to profile."""
        from tensorflow.python.profiler import profiler_v2

        try:
            options = profiler_v2.ProfilerOptions(
                host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
            )
            profiler_v2.start(self.folder, options)
        except Exception as problem:
            self.problem = "the profiler did not start: %s" % str(problem).splitlines()[0]
            return
        self.on = True

    def stop(self):
        """End the profile and write it."""
        if not self.on:
            return
        from tensorflow.python.profiler import profiler_v2

        self.on = False
        try:
            profiler_v2.stop()
        except Exception as problem:
            self.problem = "the profile was not written: %s" % str(problem).splitlines()[0]

    def marker(self, number):
        """Return the context that labels step `number`."""
        from tensorflow.python.profiler import trace

        return StepMarker(trace.Trace, number)


class StepMarker:
    """The label of one step; made on entry, as TensorFlow's own starts its clock when it is made."""

    def __init__(self, make, number):
        self.make = make
        self.number = number
        self.inner = None

    def __enter__(self):
        self.inner = self.make("train", step_num=self.number, _r=1)
        return self.inner.__enter__()

    def __exit__(self, *problem):
        return self.inner.__exit__(*(problem or sys.exc_info()))

    def cancel(self):
        """Say in the profile that this was no step: the label itself cannot be taken back."""
        self.inner.set_metadata(no_step=1)


class NoMarker:
    """Stands where the program labels its steps itself."""

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        return None

    def cancel(self):
        """Leave the program's own label as it is."""
