"""When a step begins and ends, and which phase of the trace it belongs to.

Several things can look like a step at once (a loop over a dataset that calls ``train_on_batch`` that calls a
function). Each is a `Track`; the clock elects the one that drives the phases:
warm-up, then plain steps that are only timed, then steps under the profiler.
"""

import contextlib
from time import perf_counter

#: Kinds of step, the surest first.
RANKS = {
    "fit": 5,
    "train_on_batch": 4,
    "dataset loop": 3,
    "step function": 2,
    "optimizer": 1,
    "gradient": 0,
}

WARMUP, PLAIN, PROFILE, DONE = "warmup", "plain", "profile", "done"

#: Steps of a track that must close while the driver stands still before the track takes over.
PATIENCE = 50


def waited(settle):
    """Return the milliseconds that `settle` took."""
    began = perf_counter()
    settle()
    return (perf_counter() - began) * 1000.0


class Track:
    """One sequence of steps: its kind, the user's line, and the milliseconds of each step with its phase."""

    def __init__(self, kind, spot):
        self.kind = kind
        self.spot = spot
        self.rank = RANKS[kind]
        self.trained = kind != "dataset loop"
        self.steps = []
        self.counts = {WARMUP: 0, PLAIN: 0, PROFILE: 0, DONE: 0}
        self.opened = None
        self.last_return = None
        self.batch_size = None
        self.electable = True
        self.chain = None
        self.since_driver = 0
        #: Numbers of the steps with which an epoch began, but for the first one.
        self.starts = []

    def epoch(self):
        """Note that the next step is the first of another epoch."""
        if self.steps and len(self.steps) not in self.starts[-1:]:
            self.starts.append(len(self.steps))

    def times(self, *phases):
        """Return the milliseconds of the steps of `phases`."""
        return [ms for ms, phase in self.steps if phase in phases]


class Limits:
    """How long each phase lasts: steps, and seconds after which fewer steps will do."""

    def __init__(self, warmup, plain, window, seconds):
        self.warmup = warmup
        self.plain = plain
        self.window = window
        self.seconds = seconds

    def shorten(self, total, past=0):
        """Fit the phases into `total` steps, where so many are known to come and the limits ask for more.

        The first `past` steps stay with the warm-up.
        """
        left = total - past
        if total >= self.warmup + self.plain + self.window + 1 or left < 13:
            return
        self.warmup = min(self.warmup, past + max(2, left // 5))
        self.plain = min(self.plain, max(5, left // 4))
        self.window = min(self.window, total - self.warmup - self.plain - 1)


class Clock:
    """Collects the steps of every track and moves the trace through its phases.

    `enter` is called with the name of each new phase, between two steps; `marker` makes the
    context that labels a step in the profile, given its number; `stepped` is told of every step of the
    driver, and `settle` waits until the device has done what it was given.
    """

    def __init__(self, limits, enter, marker, stepped, settle=lambda: None):
        self.limits = limits
        self.enter = enter
        self.marker = marker
        self.stepped = stepped
        self.settle = settle
        self.phase = WARMUP
        self.phase_began = None
        self.tracks = {}
        self.driver = None
        self.active_loops = []
        self.open_marker = None
        self.number = 0

    def track(self, kind, key, spot):
        """Return the track of `kind` and `key`, made at first sight."""
        found = self.tracks.get((kind, key))
        if found is None:
            found = self.tracks[kind, key] = Track(kind, spot)
        return found

    def open(self, track, since=None):
        """Begin a step of `track`, now or at the earlier moment `since`."""
        if track.opened is None:
            track.opened = perf_counter() if since is None else since
        if track is self.driver and self.phase == PROFILE and self.open_marker is None:
            self.open_marker = self.marker(self.number)
            self.open_marker.__enter__()
            self.number += 1

    def close(self, track, count=1, at=None):
        """End the open step of `track`, if there is one; `count` says how many training steps it held."""
        now = perf_counter() if at is None else at
        if track.opened is None:
            return
        if track is self.driver:
            self._leave_marker()
        ms = (now - track.opened) * 1000.0 / count
        track.opened = None
        phase = self.phase if track is self.driver else WARMUP
        track.steps.extend([(ms, phase)] * count)
        track.counts[phase] += count
        self._elect(track, count)
        if track is self.driver:
            self.stepped(track)
            self._advance()

    def drop(self, track):
        """Forget the open step of `track`: what follows it is no step."""
        track.opened = None
        if track is self.driver and self.open_marker is not None:
            self.open_marker.cancel()
            self._leave_marker()

    @contextlib.contextmanager
    def pause(self):
        """Keep out of the steps of the profile what happens within; no step may be open."""
        marker = self.marker(self.number) if self.phase == PROFILE else None
        if marker is not None:
            marker.__enter__()
            marker.cancel()
        try:
            yield
        finally:
            if marker is not None:
                marker.__exit__(None, None, None)

    def tick(self, track, since=None):
        """End the step of `track` that is open and begin the next."""
        self.close(track, at=since)
        self.open(track, since)

    def training_seen(self):
        """Note that the program just trained: the innermost loop over a dataset is a training loop."""
        if self.active_loops:
            self.active_loops[-1].trained = True

    def _leave_marker(self):
        if self.open_marker is not None:
            self.open_marker.__exit__(None, None, None)
            self.open_marker = None

    def _elect(self, track, count):
        driver = self.driver
        if track is driver:
            for other in self.tracks.values():
                other.since_driver = 0
            return
        track.since_driver += count
        if not (track.trained and track.electable) or self.phase in (PROFILE, DONE):
            return
        # A lower kind takes over only when the driver's loop is over or long silent.
        silent = driver is not None and (
            (driver.opened is None and track.since_driver >= 3 and driver.kind != "fit")
            or track.since_driver >= PATIENCE
        )
        higher = driver is None or (track.rank > driver.rank and len(track.steps) >= 2)
        if higher or silent:
            self.driver = track
            for other in self.tracks.values():
                other.since_driver = 0
            if self.phase == PLAIN:
                self._begin(WARMUP)

    def _begin(self, phase):
        self.phase = phase
        self.enter(phase)
        self.phase_began = perf_counter()

    def _advance(self):
        if self.phase_began is None:
            self.phase_began = perf_counter()
        spent = perf_counter() - self.phase_began
        limits = self.limits
        done = self.driver.counts[self.phase]
        if self.phase == WARMUP:
            if len(self.driver.steps) >= limits.warmup or spent > limits.seconds:
                self.settle()
                self._begin(PLAIN)
        elif self.phase == PLAIN:
            if done >= limits.plain or (spent > limits.seconds and done >= 2):
                self._charge(done)
                self._begin(PROFILE)
        elif self.phase == PROFILE and (done >= limits.window or spent > limits.seconds):
            self._begin(DONE)

    def _charge(self, count):
        """Spread what the device still had to do over the plain steps: the host may run ahead of a GPU."""
        late = waited(self.settle) / count
        steps = self.driver.steps
        self.driver.steps = [(ms + late, phase) if phase == PLAIN else (ms, phase) for ms, phase in steps]

    def best(self):
        """Return the driver, or where none was elected the track of the highest kind that trained at all."""
        if self.driver is not None:
            return self.driver
        trained = [track for track in self.tracks.values() if track.trained]
        for track in trained:
            if not track.steps and track.opened is not None and track.last_return is not None:
                self.close(track, at=track.last_return)
        trained = [track for track in trained if track.steps]
        return max(trained, key=lambda track: (track.rank, len(track.steps)), default=None)
