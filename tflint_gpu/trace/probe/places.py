"""Which files are the user's project, and which of their lines a call came from."""

import ast
import linecache
import os
import re
import sys

from .threads import made_at

PROBE = os.path.dirname(os.path.abspath(__file__))
INTERNAL = re.compile(r"[/\\](tensorflow|keras|tf_keras|tensorboard)[/\\]")
INSTALLED = re.compile(r"[/\\](site-packages|dist-packages)[/\\]")

#: What a file is to the probe.
PROJECT, OURS, KERAS, TENSORFLOW, OTHER = "project", "ours", "keras", "tensorflow", "other"


class Places:
    """Classifies source files and turns frames into spots: ``{"path", "line", "cell", "function"}``.

    `roots` are the folders of the project, `start` the folder that paths are stated relative to. `cells` names the
    pseudo files that notebook cells were compiled as: ``{filename: (path, cell)}``.
    """

    def __init__(self, roots, start, cells=None):
        self.roots = [os.path.join(os.path.realpath(root), "") for root in roots]
        self.start = os.path.realpath(start)
        self.cells = dict(cells or {})
        self.kinds = {}
        self.relative = {}
        self.loops = {}
        #: Lines of AutoGraph's generated files and where each comes from: ``{filename: {line: (file, line)}}``.
        self.generated = {}
        self.library = os.path.join(os.path.dirname(os.path.realpath(os.__file__)), "")

    def kind(self, filename):
        """Return what `filename` is: project, ours, keras, tensorflow or other."""
        found = self.kinds.get(filename)
        if found is None:
            found = self.kinds[filename] = self._classify(filename)
        return found

    def _classify(self, filename):
        if filename in self.cells:
            return PROJECT
        if filename.startswith("<") or "__autograph_generated_file" in filename:
            return OTHER
        path = os.path.realpath(filename)
        if path.startswith(os.path.join(PROBE, "")):
            return OURS
        installed = INSTALLED.search(path) or path.startswith(self.library)
        if not installed and any(path.startswith(root) for root in self.roots):
            return PROJECT
        match = INTERNAL.search(path)
        if match is None:
            return OTHER
        return KERAS if "keras" in path[match.start() :] else TENSORFLOW

    def is_project(self, filename):
        """Say whether a file name, as frames give it, is the user's."""
        return self.kind(filename) == PROJECT

    def path(self, filename):
        """Return the path of a project file relative to the start folder, with forward slashes."""
        found = self.relative.get(filename)
        if found is None:
            shown = self.cells[filename][0] if filename in self.cells else os.path.realpath(filename)
            found = os.path.relpath(shown, self.start) if os.path.isabs(shown) else shown
            found = self.relative[filename] = found.replace(os.sep, "/")
        return found

    def key(self, filename):
        """Return the key of `filename` in the record of executed lines: its path, with ``#cell`` in a notebook."""
        path = self.path(filename)
        return "%s#%d" % (path, self.cells[filename][1]) if filename in self.cells else path

    def spot_of(self, filename, line, function=""):
        """Return the spot of a line of a project file, None for any other file."""
        if self.kind(filename) != PROJECT:
            return None
        cell = self.cells[filename][1] if filename in self.cells else None
        name = "" if function == "<module>" else function
        # AutoGraph names its versions of functions so.
        name = name[4:] if name.startswith("tf__") else name
        return {"path": self.path(filename), "line": line, "cell": cell, "function": name}

    def code_spot(self, code):
        """Return where the function of `code` is defined, None outside the project."""
        return self.spot_of(code.co_filename, code.co_firstlineno, code.co_name) if code is not None else None

    def caller(self, through=(OURS, OTHER)):
        """Return the spot of the innermost project frame; None when a frame of a kind not in `through` is nearer.

        With the default, a call that Keras or TensorFlow made by themselves has no spot, one that
        ``tqdm`` passed on has, and so has what a thread was made for: that of the line that made it.
        """
        frame = sys._getframe(1)
        while frame is not None:
            origin = self.generated.get(frame.f_code.co_filename, {}).get(frame.f_lineno)
            if origin is not None and self.kind(origin[0]) == PROJECT:
                return self.spot_of(origin[0], origin[1], frame.f_code.co_name)
            kind = self.kind(frame.f_code.co_filename)
            if kind == PROJECT:
                return self.spot_of(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            if kind not in through:
                return None
            frame = frame.f_back
        return made_at()

    def in_loop(self):
        """Say whether some project frame of this call stands in a loop: then more calls like this may come."""
        frame = sys._getframe(1)
        while frame is not None:
            filename = frame.f_code.co_filename
            if self.kind(filename) == PROJECT:
                if filename not in self.loops:
                    self.loops[filename] = loop_ranges("".join(linecache.getlines(filename)))
                if any(first < frame.f_lineno <= last for first, last in self.loops[filename]):
                    return True
            frame = frame.f_back
        return False

    def anywhere(self):
        """Return the spot of the innermost project frame, whoever called in between."""
        return self.caller(through=(OURS, OTHER, KERAS, TENSORFLOW))


def loop_ranges(source):
    """Return first and last line of every loop of `source`, a one-line loop as beginning a line earlier."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    loops = [
        node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While, ast.ListComp, ast.GeneratorExp))
    ]
    return [(node.lineno - isinstance(node, ast.expr), node.end_lineno) for node in loops]


def same(one, other):
    """Say whether two spots are the same line."""
    return (
        one is not None
        and other is not None
        and (one["path"], one["line"], one["cell"]) == (other["path"], other["line"], other["cell"])
    )


def identity(spot):
    """Return a hashable key of a spot's line."""
    return None if spot is None else (spot["path"], spot["line"], spot["cell"])
