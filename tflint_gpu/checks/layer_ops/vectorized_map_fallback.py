"""TFG508: a ``vectorized_map`` that cannot vectorize, and loops over the batch instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from tflint_gpu.checks.architecture import place_of_layer
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.generators import callable_function, calls_inside
from tflint_gpu.checks.op_time import judge_loop
from tflint_gpu.checks.steps import compiled, hides_gpus, in_training_step, loudest
from tflint_gpu.findings import Finding, Related, Severity
from tflint_gpu.program.values import Const

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.views import Program
    from tflint_gpu.trace.evidence import Evidence

#: Functions that leave a loop in the graph of ``tf.vectorized_map`` (measured with TensorFlow 2.21: each was
#: traced over a batch of two, and the graph searched for ``While``).
WITHOUT_CONVERTER = frozenset(
    f"tf.{name}"
    for name in (
        *("image.random_contrast", "image.random_hue", "image.random_saturation", "image.resize"),
        *("image.resize_with_pad", "image.crop_and_resize", "image.extract_patches", "image.rgb_to_hsv"),
        *("image.hsv_to_rgb", "image.ssim", "image.adjust_jpeg_quality", "image.non_max_suppression"),
        *("image.draw_bounding_boxes", "random.shuffle", "linalg.det", "linalg.svd", "linalg.qr", "linalg.eig"),
        *("linalg.expm", "linalg.lu", "linalg.sqrtm", "linalg.pinv", "unique", "boolean_mask", "math.bincount"),
        *("histogram_fixed_width", "math.segment_sum", "scatter_nd", "tensor_scatter_nd_add", "map_fn", "scan"),
        *("reverse_sequence", "dynamic_partition", "dynamic_stitch", "as_string", "numpy_function", "py_function"),
        *("strings.as_string", "while_loop", "nn.depthwise_conv2d", "raw_ops.ImageProjectiveTransformV3"),
    )
)

#: Image layers of Keras 2 that go through ``vectorized_map`` (read in the wheels of Keras 2.9 and 2.10), by minor
#: version; the loop was reported for these two versions.
_LAYERS: dict[int, tuple[str, ...]] = {
    9: ("RandomTranslation", "RandomContrast", "RandomBrightness"),
    10: (
        *("RandomCrop", "RandomTranslation", "RandomRotation", "RandomZoom", "RandomContrast", "RandomBrightness"),
        "RandomHeight",
    ),
}


class VectorizedMapFallback(Check):
    """A ``vectorized_map`` over ops without a converter, or an image layer of Keras 2.9 or 2.10 built on one."""

    needles: ClassVar[tuple[str, ...]] = ("vectorized_map", *sorted(set(_LAYERS[9] + _LAYERS[10])))

    def find(self, program: Program) -> Iterator[Finding]:
        """Yield such calls in the training step, and such layers in the trained model."""
        if program.target.on_tensorflow and not hides_gpus(program):
            yield from loudest((*self._calls(program), *self._layers(program)))

    def _calls(self, program: Program) -> Iterator[Finding]:
        for call in program.calls_to("tf.vectorized_map", "keras.ops.vectorized_map"):
            function = callable_function(call.argument("fn", 0) or call.argument("function", 0))
            allowed = call.argument("fallback_to_while_loop", 2)
            if function is None or (allowed is not None and not (isinstance(allowed, Const) and allowed.value)):
                continue
            if not in_training_step(call, program):
                continue
            blocker = next((inner for inner in calls_inside(program, function) if _no_converter(inner)), None)
            if blocker is None:
                continue
            name = blocker.callee.removeprefix("tf.")
            yield self.at(
                call,
                f"{name} has no vectorized form: vectorized_map falls back to a loop over the batch and the GPU "
                "idles between small kernels; use one op on the whole batch",
                severity=Severity.INFO if compiled(call, program) == "yes" else None,
                related=(Related(blocker.location, "this op makes it a loop"),),
            )

    def _layers(self, program: Program) -> Iterator[Finding]:
        version = program.target.keras
        names = _LAYERS.get(version[1], ()) if version[0] == 2 else ()
        for model in program.models if names else ():
            for made in model.layers if model.trained else ():
                name = made.callee.rpartition(".")[2]
                if name in names and made.callee == f"keras.layers.{name}":
                    yield self.at(
                        place_of_layer(made, model, program),
                        f"{name} of Keras 2.{version[1]} loops over the images of a batch and the GPU idles "
                        "between small kernels; map it over single images in the dataset, or upgrade",
                        qualname=made.qualname,
                    )

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        """Judge by the loop that the lines made: its launches on a GPU, its own time on a CPU."""
        return judge_loop(finding, evidence)


def _no_converter(call: Call) -> bool:
    if call.callee == "tf.where":
        return len(call.args) == 1 and not call.kwargs.keys() & {"x", "y"}
    return call.callee in WITHOUT_CONVERTER
