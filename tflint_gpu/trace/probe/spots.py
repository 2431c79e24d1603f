"""The user's line behind each op of a graph, for a bounded time. Part of the probe: stdlib only."""

import functools
import time

#: Seconds for all graphs together: reading where an op was made takes a quarter of a millisecond under `fit`.
LIMIT = 5.0


class Spots:
    """Finds the user's lines behind ops, each call stack once, for `LIMIT` seconds."""

    def __init__(self, is_project):
        self.known = functools.lru_cache(maxsize=None)(is_project)
        self.end = time.monotonic() + LIMIT
        self.found = {}

    def of(self, op):
        """Return (file, line, function) of the innermost project frame that made `op`; raise TimeoutError late."""
        if time.monotonic() > self.end:
            raise TimeoutError("the graphs are too large to look through in %g s" % LIMIT)
        stack = op.traceback
        if stack not in self.found:  # a call that makes several ops makes them with equal stacks
            self.found[stack] = self._innermost(stack or ())
        return self.found[stack]

    def _innermost(self, stack):
        for frame in reversed(stack):
            if self.known(frame.filename):
                return (frame.filename, frame.lineno, frame.name)
        return None
