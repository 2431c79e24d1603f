"""Serving another text for some of the script's files, which themselves stay as they are."""

import functools
import importlib.machinery
import io
import linecache
import os
import tokenize


class Replaced:
    """Files by their real path, and the bytes that an import or a run of them is to see instead."""

    def __init__(self, files):
        self.contents = {}
        for path, substitute in files.items():
            with open(substitute, "rb") as file:
                self.contents[os.path.realpath(path)] = file.read()
        if self.contents:
            loader = importlib.machinery.SourceFileLoader
            loader.get_data = self._get_data(loader.get_data)
            loader.path_stats = self._path_stats(loader.path_stats)

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
