"""Patching: replace a method by a watched one, and do it when TensorFlow and Keras are imported, not before.

The script may set environment variables that TensorFlow reads at import, so the probe never imports it first.
"""

import functools
import importlib.util
import sys


def patch(owner, name, make):
    """Replace ``owner.name`` by ``make(original)`` where the class or module itself defines it.

    Returns whether there was something to replace.
    """
    original = vars(owner).get(name)
    if original is None:
        return False
    static = isinstance(original, (staticmethod, classmethod))
    function = original.__func__ if static else original
    if not callable(function):
        return False
    watched = functools.wraps(function)(make(function))
    setattr(owner, name, type(original)(watched) if static else watched)
    return True


def patch_defining(cls, name, make):
    """Patch `name` on every class of the MRO of `cls` that defines it; returns the number patched."""
    return sum(patch(owner, name, make) for owner in cls.__mro__ if owner is not object)


class ImportWatch:
    """Calls ``actions[name](module)`` once, right after the top-level module `name` was imported."""

    def __init__(self, actions):
        self.actions = actions
        self.busy = set()
        for name in list(actions):
            if name in sys.modules:
                self._run(name)
        sys.meta_path.insert(0, self)

    def _run(self, name):
        action = self.actions.pop(name, None)
        if action is not None:
            action(sys.modules[name])

    def find_spec(self, name, path=None, target=None):
        """Find watched modules like everybody else does, and watch their execution."""
        if name not in self.actions or name in self.busy:
            return None
        self.busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy.discard(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self._run(name)

        spec.loader.exec_module = exec_module
        return spec
