"""Which lines of the project ran before the timed window.

On Python 3.12 and later ``sys.monitoring`` reports each line once at almost no cost; before that a trace function
looks at project frames only, and is lifted while foreign modules are imported.
"""

import builtins
import sys
import threading

from .places import PROJECT

#: Entries into one function after which its lines are no longer recorded (trace function only).
ENOUGH = 60


class Lines:
    """Records executed lines by file until `stop`."""

    def __init__(self, places):
        self.places = places
        self.seen = {}
        self.active = False
        self.entries = {}
        self.tool = None
        self.original_import = builtins.__import__

    def start(self):
        """Begin to record."""
        self.active = True
        if hasattr(sys, "monitoring"):
            self._start_monitoring()
            return
        builtins.__import__ = self._quiet_import
        threading.settrace(self._entered)
        sys.settrace(self._entered)

    def stop(self):
        """End recording; nothing of it costs time afterwards."""
        if not self.active:
            return
        self.active = False
        if self.tool is not None:
            sys.monitoring.set_events(self.tool, 0)
            sys.monitoring.free_tool_id(self.tool)
            return
        builtins.__import__ = self.original_import
        threading.settrace(None)
        sys.settrace(None)
        frame = sys._getframe()
        while frame is not None:
            frame.f_trace = None
            frame = frame.f_back

    def join_thread(self):
        """Record in this thread too; TensorFlow's own threads do not pass Python's thread hooks."""
        current = sys.gettrace()
        if self.active and self.tool is None and current is None:
            sys.settrace(self._entered)
        elif not self.active and current == self._entered:
            sys.settrace(None)

    def note(self, filename, line):
        """Record one line of a file."""
        self.seen.setdefault(filename, set()).add(line)

    def _start_monitoring(self):
        monitoring = sys.monitoring
        self.tool = next(each for each in (4, 3, 2, 1) if monitoring.get_tool(each) is None)
        monitoring.use_tool_id(self.tool, "tflint-gpu")

        def start(code, offset):
            filename = code.co_filename
            if filename in self.places.generated or self.places.kind(filename) == PROJECT:
                monitoring.set_local_events(self.tool, code, monitoring.events.LINE)
            return monitoring.DISABLE

        def line(code, number):
            if code.co_filename in self.places.generated:
                self._note_generated(code.co_filename, number)
            else:
                self.note(code.co_filename, number)
            return monitoring.DISABLE

        monitoring.register_callback(self.tool, monitoring.events.PY_START, start)
        monitoring.register_callback(self.tool, monitoring.events.LINE, line)
        monitoring.set_events(self.tool, monitoring.events.PY_START)

    def _note_generated(self, filename, line):
        origin = self.places.generated.get(filename, {}).get(line)
        if origin is not None and self.places.kind(origin[0]) == PROJECT:
            self.note(*origin)

    def _entered(self, frame, event, argument):
        if not self.active:
            return None
        code = frame.f_code
        if code.co_filename not in self.places.generated and self.places.kind(code.co_filename) != PROJECT:
            return None
        count = self.entries[code] = self.entries.get(code, 0) + 1
        return self._line if count <= ENOUGH else None

    def _line(self, frame, event, argument):
        if not self.active:
            return None
        filename = frame.f_code.co_filename
        if filename in self.places.generated:
            self._note_generated(filename, frame.f_lineno)
        else:
            self.note(filename, frame.f_lineno)
        return self._line

    def _quiet_import(self, name, *rest, **named):
        # Importing TensorFlow under a trace function takes half as long again.
        current = sys.gettrace()
        if current is None or name.partition(".")[0] not in HEAVY or name in sys.modules:
            return self.original_import(name, *rest, **named)
        sys.settrace(None)
        try:
            return self.original_import(name, *rest, **named)
        finally:
            if self.active:
                sys.settrace(current)

    def report(self):
        """Return the recorded lines by key of the file, sorted."""
        return {
            self.places.key(filename): sorted(lines)
            for filename, lines in list(self.seen.items())
            if self.places.kind(filename) == PROJECT
        }


HEAVY = frozenset(
    "tensorflow keras tf_keras numpy scipy pandas sklearn matplotlib PIL cv2 torch jax h5py transformers".split()
)


def watch_autograph(places, lines):
    """Learn where AutoGraph's generated code comes from, so that its lines count for the user's."""
    from tensorflow.python.autograph.impl import api

    original = getattr(api, "_convert_actual", None)
    if original is None:
        return

    def convert(entity, context):
        converted = original(entity, context)
        try:
            note_origins(places, converted)
        except (AttributeError, TypeError):
            for line in lines_of(entity.__code__):
                lines.note(entity.__code__.co_filename, line)
        return converted

    api._convert_actual = convert


def note_origins(places, converted):
    """File the source map of one converted function under its generated file."""
    for generated, origin in converted.ag_source_map.items():
        table = places.generated.setdefault(generated.filename, {})
        table[generated.lineno] = (origin.loc.filename, origin.loc.lineno)


def lines_of(code):
    """Yield every line of a code object and of the functions inside it."""
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from lines_of(constant)
    if hasattr(code, "co_lines"):
        yield from (line for _, _, line in code.co_lines() if line)
    else:
        yield code.co_firstlineno
