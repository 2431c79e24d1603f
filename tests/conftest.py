"""What holds for all tests, wherever they are started."""

from __future__ import annotations

import signal

# A shell has what it runs in the background ignore Ctrl-C, and so would what a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
