"""Serving another text for some of the script's files, which themselves stay as they are.

Other Python processes that the script starts read the files from the disk: whether it does is noted.
"""

import functools
import importlib.machinery
import io
import linecache
import os
import tokenize

from .hooks import patch

#: What `multiprocessing` imports for a process that is no mere copy of this one: a copy keeps the served modules.
NEW_INTERPRETERS = (
    "multiprocessing.popen_spawn_posix",
    "multiprocessing.popen_spawn_win32",
    "multiprocessing.popen_forkserver",
)


class Replaced:
    """Files by their real path, and the bytes that an import or a run of them is to see instead."""

    def __init__(self, files):
        self.contents = {}
        #: Whether the script has started another Python, which sees the files as they are.
        self.bypassed = False
        for path, substitute in files.items():
            with open(substitute, "rb") as file:
                self.contents[os.path.realpath(path)] = file.read()
        if self.contents:
            loader = importlib.machinery.SourceFileLoader
            loader.get_data = self._get_data(loader.get_data)
            loader.path_stats = self._path_stats(loader.path_stats)

    def actions(self):
        """Return what to do when modules are imported that start other processes, by their names."""
        if not self.contents:
            return {}
        return {"subprocess": self._watch_subprocess, **dict.fromkeys(NEW_INTERPRETERS, self._bypass)}

    def _bypass(self, _module=None):
        self.bypassed = True

    def _watch_subprocess(self, subprocess):
        def watch(original):
            def watched(process, args, *more, **options):
                if _is_python(options.get("executable"), args):
                    self._bypass()
                return original(process, args, *more, **options)

            return watched

        patch(subprocess.Popen, "__init__", watch)

    def read(self, path):
        """Return the bytes of `path`; tracebacks and AutoGraph too read the new text of a replaced file."""
        content = self.contents.get(os.path.realpath(path))
        if content is None:
            with open(path, "rb") as file:
                return file.read()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        lines = io.TextIOWrapper(io.BytesIO(content), encoding).readlines()
        # Without a time stamp an entry of this cache is never compared with the disk.
        linecache.cache[path] = (len(content), None, lines, path)
        return content

    def _get_data(self, original):
        @functools.wraps(original)
        def watched(loader, path):
            replaced = os.path.realpath(path) in self.contents
            return self.read(path) if replaced else original(loader, path)

        return watched

    def _path_stats(self, original):
        @functools.wraps(original)
        def watched(loader, path):
            if os.path.realpath(path) in self.contents:
                # Without stamps of the source its compiled module is not looked for.
                raise OSError("served from another place")
            return original(loader, path)

        return watched


def _is_python(executable, command):
    """Say whether a process of this command is a Python; what a shell does with its text is not looked into."""
    first = command[0] if isinstance(command, (list, tuple)) and command else command
    names = (os.path.basename(os.fsdecode(name)) for name in (executable, first) if isinstance(name, (str, bytes)))
    return any(name.startswith(("python", "pypy")) for name in names)
