"""The lines of the user's that make threads: what a thread runs without a line of its own comes from there."""

import threading

from .hooks import patch

#: Where a thread keeps the spot of the line that made it.
MADE_AT = "_tflint_gpu_made_at"


def watch_threads(places):
    """Have every thread know from now on which line of the user's made it, as `places` tells."""

    def noting(original):
        def watched(thread, *args, **kwargs):
            original(thread, *args, **kwargs)
            setattr(thread, MADE_AT, places.caller())

        return watched

    patch(threading.Thread, "__init__", noting)


def made_at():
    """Return the spot of the line that made this thread, None for the first one and for those of C++.

    A worker of a pool has that of the call for which the pool made it.
    """
    # `threading.current_thread()` would make a thread of one that Python does not know.
    here = threading.get_ident()
    return next((getattr(each, MADE_AT, None) for each in threading.enumerate() if each.ident == here), None)
