"""The deadline, seen from inside: says where the script hung, and keeps what was measured until then."""

import faulthandler
import os
import signal
import sys
import threading
import time

#: Seconds after the deadline at which Python itself dumps and leaves, should no thread get to run any more.
GRACE = 5.0
#: Seconds to write the report in, whenever that begins; the parent waits a little longer beyond the deadline.
REPORTING = 10.0


class DeadlineWatch:
    """Ends the run at its deadline; profiles by time a program that works but has no steps.

    `third`, where it is not None, is a third of the seconds that an earlier run of a program without steps went on
    for after TensorFlow's import: its second third is profiled.
    """

    def __init__(self, run, seconds, dump_path, third=None):
        self.run = run
        self.seconds = seconds
        self.parent = os.getppid()
        self.began = time.monotonic()
        self.third = third
        self.dump = open(dump_path, "w")  # noqa: SIM115 - faulthandler needs it open for the whole run
        self.end = time.monotonic() + seconds
        faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=self.dump)
        self.thread = threading.Thread(target=self._wait, name="tflint-gpu-deadline", daemon=True)
        self.thread.start()

    def _wait(self):
        profiled = profiled_ops = False
        while time.monotonic() < self.end:
            time.sleep(min(0.25, self.seconds / 20.0))
            if os.name == "posix" and os.getppid() != self.parent:
                # Nobody waits for this run any more, and nobody else would end what it started.
                os.killpg(0, signal.SIGKILL)
            begins, most, works = self._by_time()
            if not profiled and time.monotonic() > begins:
                profiled = True
                if self.run.clock.best() is None and (works or self._works()):
                    self.run.profile_by_time(most)
            # Ops run one by one may be those that make the data for a training yet to come: they have longer.
            if not profiled_ops and time.monotonic() > self.began + self.seconds * 0.8:
                profiled_ops = True
                if self.run.clock.best() is None and self._works(eager=True):
                    self.run.profile_by_time(most)
        self.run.finish("deadline", hung=self._where())

    def _by_time(self):
        """Return when a program without steps is profiled, for how long, and whether it is known to work then."""
        most = min(3.0, self.seconds * 0.1)
        if self.third is None:
            return self.began + self.seconds * 0.5, most, False
        begins = self.end if self.run.imported_at is None else self.run.imported_at + self.third
        return begins, min(most, self.third), True

    def _works(self, eager=False):
        """Say whether TensorFlow ran a function within half a second, or with `eager` an op."""
        before = self.run.work(eager)
        time.sleep(min(0.5, self.seconds / 20.0))
        return self.run.work(eager) > before

    def _where(self):
        """Return the user's innermost line on the watched thread."""
        frame = sys._current_frames().get(self.run.thread)
        places = self.run.places
        while frame is not None:
            code = frame.f_code
            spot = places.spot_of(code.co_filename, frame.f_lineno, code.co_name)
            if spot is not None:
                return spot
            frame = frame.f_back
        return None

    def extend(self, seconds):
        """Allow the run `seconds` more from now."""
        self.end = time.monotonic() + seconds + GRACE
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback_later(seconds + 2 * GRACE, exit=True, file=self.dump)

    def reporting(self):
        """Let the report be written: what was measured in time must not be lost to a deadline that passes now."""
        left = max(self.end + GRACE - time.monotonic(), REPORTING)
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback_later(left, exit=True, file=self.dump)

    def cancel(self):
        """Disarm the last resort."""
        faulthandler.cancel_dump_traceback_later()
