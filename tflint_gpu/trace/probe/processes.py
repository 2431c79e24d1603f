"""Other processes that the script starts: what happens in them is not followed, and the report says so."""

import os
import sys

from .hooks import patch

#: Audit events of Python (3.8 on) that start a process beside this one.
FORKS = ("os.fork", "os.forkpty")
SPAWNS = ("subprocess.Popen", "os.posix_spawn")


class Processes:
    """Names what starts processes that could train, and sees to it that a forked copy of this one stays mute.

    `replaced` is called with a program that is about to take the place of this process: it would run with nothing
    muted, so it must not begin.
    """

    def __init__(self, replaced):
        self.replaced = replaced
        self.names = set()
        #: Whether one of them is a Python that begins anew, and so reads the files as they are on the disk.
        self.fresh = False
        self.starting = False
        #: Whether this is a copy that the script has forked.
        self.forked = False

    def install(self):
        """Listen from now on; nothing takes an audit hook away again."""
        sys.addaudithook(self._heard)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._copied)

    def _copied(self):
        self.forked = True

    def install_multiprocessing(self, process):
        """Watch the start of workers in ``multiprocessing.process``; pools and executors come through here too."""
        patch(process.BaseProcess, "start", self._started)

    def _started(self, original):
        def watched(worker):
            import multiprocessing

            self.names.add("multiprocessing")
            method = getattr(worker, "_start_method", None) or multiprocessing.get_start_method()
            self.fresh = self.fresh or method != "fork"
            self.starting = True
            try:
                return original(worker)
            finally:
                self.starting = False

        return watched

    def _heard(self, event, arguments):
        if event in FORKS:
            if not self.starting:
                self.names.add(event)
        elif event in SPAWNS:
            name = os.path.basename(os.fsdecode(arguments[0] or ""))
            if name.startswith(("python", "pypy")):
                self.names.add(name)
                self.fresh = True
        elif event == "os.exec" and not self.forked:
            self.replaced(os.path.basename(os.fsdecode(arguments[0])))
