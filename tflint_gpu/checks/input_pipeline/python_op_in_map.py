"""TFG105: Python code inside a tf.data function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import callable_function
from tflint_gpu.checks.input_costs import judge_python
from tflint_gpu.checks.map_functions import PYTHON_WRAPPERS, library_call
from tflint_gpu.checks.pipelines import all_stages, asks_parallel, runs_once
from tflint_gpu.findings import Finding, Related, Severity

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Stage
    from tflint_gpu.program.views import Pipeline, Program
    from tflint_gpu.trace.evidence import Evidence

_SERIAL = "{what}: Python makes every element, one at a time, and the GPU waits. Use {twin}."
_LOCKED = (
    "{what}: Python makes every element; parallel calls share one interpreter lock and the GPU waits. Use {twin}."
)
_CACHED = "{what}: Python makes every element, but only once: its result is cached."

_WORK = "{work} works on one element at a time under Python's lock while the GPU waits. Use {twin}."

#: What TensorFlow offers instead, by the library (or the call) that the Python code uses.
_TWINS = {
    "cv2": "tf.io.decode_image and tf.image",
    "PIL": "tf.io.decode_image and tf.image",
    "imageio": "tf.io.decode_image",
    "skimage": "tf.image",
    "albumentations": "tf.image",
    "imgaug": "tf.image",
    "librosa": "tf.audio and tf.signal",
    "soundfile": "tf.audio.decode_wav",
    "scipy": "tf.signal",
    "pandas": "tf.data.experimental.CsvDataset",
    "numpy.load": "TFRecord files",
    "pydicom": "TFRecord files",
    "nibabel": "TFRecord files",
    "h5py": "TFRecord files",
    "pickle": "TFRecord files",
}


class PythonOpInMap(Check):
    """``py_function`` or ``numpy_function`` inside ``map``, ``filter`` or ``interleave``."""

    needles = ("py_function", "numpy_function", "py_func")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every call that hands an element of a training pipeline to Python."""
        for pipeline in program.pipelines:
            if pipeline.role not in ("train", "validation"):
                continue
            for stage, _ in all_stages(pipeline.dataset):
                for call in stage.calls:
                    if call.callee in PYTHON_WRAPPERS and not call.context.debug:
                        yield from self._python(pipeline, stage, call)

    def _python(self, pipeline: Pipeline, stage: Stage, call: Call) -> Iterator[Finding]:
        cached = runs_once(pipeline.dataset, stage)
        severity = Severity.INFO if cached or pipeline.role == "validation" else Severity.WARNING
        work = next((inner for inner in stage.calls if library_call(inner)), None)
        template = _CACHED if cached else _LOCKED if asks_parallel(stage) is not False else _SERIAL
        what = f"{call.callee} in {stage.op}()"
        related = [Related(stage.location, "the pipeline runs it here")]
        function = callable_function(call.argument("func", 0))
        if function is not None:
            related.append(Related(function.location, "this is the Python code"))
        names = (function.name,) if function else ()
        yield self.at(
            call,
            template.format(what=what, twin=_twin(work)),
            severity=severity,
            related=tuple(related),
            names=names,
        )
        apart = work is not None and work.location.line != call.location.line
        if work is not None and apart and severity is Severity.WARNING:
            spoken = work.callee.replace("()", "")
            message = _WORK.format(work=spoken, twin=_twin(work))
            yield self.at(work, message, severity=Severity.INFO, places=(call.location,), names=names)

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """The time of the Python calls and what input costs as a whole decide."""
        return judge_python(finding, evidence, "py_function", "numpy_function")


def _twin(work: Call | None) -> str:
    if work is None:
        return "TensorFlow ops"
    return _TWINS.get(work.callee) or _TWINS.get(work.callee.partition(".")[0], "TensorFlow ops")
