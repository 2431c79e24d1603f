"""TFG119: eager TensorFlow work in the Python code that makes batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import callable_function, simulates
from tflint_gpu.checks.input_costs import judge_python
from tflint_gpu.checks.map_functions import FILE_READS, PYTHON_WRAPPERS, TRIVIAL, called_layers
from tflint_gpu.checks.pipelines import all_stages, training_pipelines
from tflint_gpu.checks.steps import loudest
from tflint_gpu.findings import Finding, Location, Related, Severity
from tflint_gpu.program.calls import Call
from tflint_gpu.program.context import Activation, Region
from tflint_gpu.program.kernels import cpu_only
from tflint_gpu.program.values import Function
from tflint_gpu.program.views import Model

if TYPE_CHECKING:
    from tflint_gpu.program.context import Context
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

_LAYERS = ("keras.layers.Layer.__call__", "keras.Model.__call__")

#: Calls that compute nothing on a device: they read, describe, or have no kernel for a GPU.
_IDLE = ("tf.io.", "tf.data.", "tf.config.", "tf.random.set_", "tf.summary.", "tf.print", "tf.strings.",
         "tf.TensorSpec", "tf.TensorArray", "tf.Tensor.", "tf.Variable.", "tf.image.decode_", "tf.audio.",
         "tf.compat.", "tf.nest.", "tf.bitcast", "tf.debugging.", "tf.errors.", "tf.dtypes.", "tf.keras",
         "tf.device", "tf.function", "tf.range", "tf.train.", "tf.saved_model.", "tf.lookup.")  # fmt: skip

_LAYER = (
    "{name} runs eagerly in the loader: kernels too small for a GPU, in line with those of the step. Use it in "
    "Dataset.map, or put it into the model."
)
_OPS = (
    "{name} runs eagerly in the loader, one launch an op, in line with the step's own on the GPU. Use NumPy here, "
    "or tf.data with map."
)


class KerasLayerInDataLoader(Check):
    """Reports layers, models and TensorFlow ops called in ``__getitem__``, generators and ``numpy_function``."""

    needles: ClassVar[tuple[str, ...]] = ("yield", "__getitem__", "__next__", "py_func", "numpy_function")

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield every layer, and the first op of each loader; what is traced, as in `Dataset.map`, is well."""
        yield from loudest(self._all(program))

    def _all(self, program: Program) -> Iterator[Finding]:
        told: set[Location] = set()
        wrapped = _wrapped(program)
        for call in program.calls_within(lambda context: bool(wrapped) or context.region == "loader"):
            loader = _loader(call.context, wrapped)
            if loader is None or call.context.debug or call.callee.startswith("builtins."):
                continue
            if call.callee in _LAYERS:
                yield self._at(call, _LAYER, _name(call), loader, program)
                told.add(loader.location)
            elif _computes(call, program) and loader.location not in told:
                told.add(loader.location)
                yield self._at(call, _OPS, call.callee, loader, program)

    def _at(self, call: Call, message: str, name: str, loader: Function, program: Program) -> Finding:
        inside = [other for other in program.calls if _runs_in(other, loader)]
        return self.at(
            call,
            message.format(name=name),
            severity=Severity.INFO if simulates(inside) else None,
            related=(Related(loader.location, "this makes the batches"),),
            places=(loader.location,),
            names=(loader.name, loader.owner.name if loader.owner else loader.name),
        )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the time that the loader's Python takes, of which this is a part."""
        return judge_python(finding, evidence, "generator", "PyDataset", "py_function", "numpy_function")


def _wrapped(program: Program) -> dict[int, Function]:
    """Return the functions that ``numpy_function`` runs in what feeds training, by their syntax.

    ``py_function`` puts the ops of its function on the device it runs on itself: in a dataset, the CPU.
    """
    feeding = {
        id(stage.call) for pipeline in training_pipelines(program) for stage, _ in all_stages(pipeline.dataset)
    }
    found = {}
    for call in program.calls_to("tf.numpy_function", "tf.compat.v1.py_func"):
        function = callable_function(call.argument("func"))
        stages = [frame.owner for frame in call.context if isinstance(frame, Region) and frame.kind == "dataset"]
        if function is not None and any(id(stage) in feeding for stage in stages):
            found[id(function.node)] = function
    return found


def _loader(context: Context, wrapped: dict[int, Function]) -> Function | None:
    """Return the function that makes training batches and whose code runs eagerly in `context`, if one does."""
    outermost: Function | None = None
    for frame in context:
        if isinstance(frame, Activation):
            outermost = frame.function
            if id(outermost.node) in wrapped:
                return outermost
        elif isinstance(frame, Region):
            return outermost if frame.kind == "loader" and _feeds_training(frame) else None
    return None


def _feeds_training(region: Region) -> bool:
    owner = region.owner
    return isinstance(owner, Call) and owner.callee.endswith((".fit", ".fit_generator", ".from_generator"))


def _computes(call: Call, program: Program) -> bool:
    """Say whether `call` is an op that a GPU would compute, and no trifle."""
    name = call.callee
    if name in TRIVIAL or name in FILE_READS or name in PYTHON_WRAPPERS or name.startswith(_IDLE):
        return False
    on_gpu = name.startswith(("tf.", "keras.ops.", "keras.random."))
    return on_gpu and cpu_only(name, call, program.target.tensorflow) is None


def _runs_in(call: Call, loader: Function) -> bool:
    return any(frame.function.node is loader.node for frame in call.context.activations)


def _name(call: Call) -> str:
    layers = called_layers(call)
    if isinstance(call.receiver, Model) or not layers:
        return "A model" if isinstance(call.receiver, Model) else "A layer"
    return layers[0].callee.rpartition(".")[2]
