"""What is known of the functions given to tf.data: which are stateful, which are Python, which cost nothing.

Measured by tracing functions with TensorFlow 2.21 and reading the rewritten chains of 2.10.1, 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Produced, Stage
from tflint_gpu.program.views import Model, literal

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Wrappers that run Python inside a graph.
PYTHON_WRAPPERS = frozenset({"tf.py_function", "tf.numpy_function", "tf.compat.v1.py_func"})

#: TensorFlow calls so cheap that running them one after another costs nothing worth a word.
TRIVIAL = frozenset(
    f"tf.{name}"
    for name in (
        *(
            "cast",
            "constant",
            "convert_to_tensor",
            "ensure_shape",
            "expand_dims",
            "identity",
            "one_hot",
            "reshape",
        ),
        *(
            "shape",
            "size",
            "squeeze",
            "stack",
            "unstack",
            "concat",
            "zeros",
            "ones",
            "zeros_like",
            "ones_like",
            "fill",
        ),
        *(
            "transpose",
            "split",
            "divide",
            "multiply",
            "subtract",
            "add",
            "equal",
            "TensorShape",
            "nest.map_structure",
        ),
        *("Tensor.set_shape", "Tensor.get_shape", "debugging.assert_equal", "data.Dataset.from_tensors", "rank"),
    )
)

#: Keras layers whose call leaves a map stateless.
_STATELESS_LAYERS = frozenset(
    f"keras.layers.{name}"
    for name in (
        *("Rescaling", "Resizing", "CenterCrop", "Normalization", "InputLayer", "CategoryEncoding", "Hashing"),
        *("Discretization", "Flatten", "Reshape", "Permute", "Activation", "ReLU", "ZeroPadding2D", "Cropping2D"),
        *("Lambda", "HashedCrossing"),
    )
)
_LOOKUP_LAYERS = frozenset(
    f"keras.layers.{name}" for name in ("TextVectorization", "StringLookup", "IntegerLookup")
)
_NOT_RANDOM = ("tf.random.stateless_", "tf.random.set_", "tf.random.get_", "tf.random.split", "tf.random.fold_in")

#: Calls that read a file, in graphs and in Python.
FILE_READS = frozenset(
    {
        *("tf.io.read_file", "tf.compat.v1.read_file", "tf.io.gfile.GFile", "builtins.open", "numpy.load"),
        *(
            "numpy.loadtxt",
            "numpy.genfromtxt",
            "numpy.fromfile",
            "cv2.imread",
            "cv2.VideoCapture",
            "PIL.Image.open",
        ),
        *("imageio.imread", "imageio.v2.imread", "imageio.v3.imread", "skimage.io.imread", "tifffile.imread"),
        *("matplotlib.pyplot.imread", "matplotlib.image.imread", "rasterio.open", "keras.utils.load_img"),
        *("keras.preprocessing.image.load_img", "pandas.read_csv", "pandas.read_pickle", "pandas.read_parquet"),
        *("pandas.read_hdf", "pandas.read_json", "pandas.read_feather", "pandas.read_table", "pandas.read_excel"),
        *("pickle.load", "json.load", "joblib.load", "h5py.File", "zarr.open", "pyarrow.parquet.read_table"),
        *("librosa.load", "soundfile.read", "scipy.io.wavfile.read", "scipy.io.loadmat", "torchaudio.load"),
        *("pydicom.dcmread", "pydicom.read_file", "nibabel.load", "SimpleITK.ReadImage"),
    }
)

#: Libraries whose work on samples the interpreter pays for, call by call.
PYTHON_LIBRARIES = frozenset(
    {
        *("cv2", "PIL", "skimage", "imageio", "imgaug", "albumentations", "torchvision", "tifffile", "rasterio"),
        *("librosa", "soundfile", "torchaudio", "pretty_midi", "music21", "scipy", "pandas", "h5py", "sklearn"),
        *("pydicom", "nibabel", "SimpleITK", "nltk", "spacy", "rdkit", "Bio"),
    }
)

_ORDER = ("python", "random", "lookup", "variable", "print")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a map function is stateful: `kind` is ``python``, ``random``, ``lookup``, ``variable`` or ``print``.

    `name` is what a reader would call the thing.
    """

    kind: str
    name: str


def stateful_cause(stage: Stage) -> Cause | None:
    """Return what makes the stage's function stateful, so that the runtime leaves it serial; None if nothing.

    Stateful are Python, ``tf.random``, ``tf.image.random_*``, Keras' random layers, table look-ups and captured
    variables; ``stateless_*``, Rescaling, Resizing, Normalization, CategoryEncoding, Hashing and asserts are not.
    """
    causes = [cause for call in stage.calls if not call.context.debug and (cause := _cause(call))]
    if stage.captures_variable:
        causes.append(Cause("variable", "a captured tf.Variable"))
    return min(causes, key=lambda cause: _ORDER.index(cause.kind), default=None)


def _cause(call: Call) -> Cause | None:
    name = call.callee
    if name in PYTHON_WRAPPERS:
        return Cause("python", name)
    if is_random(call):
        return Cause("random", spoken(call))
    if name.startswith("tf.lookup.") and name.endswith((".lookup", ".__getitem__")):
        return Cause("lookup", "a lookup table")
    if name in ("tf.print", "tf.compat.v1.Print"):
        return Cause("print", name)
    if name.startswith("tf.Variable."):
        return Cause("variable", "a captured tf.Variable")
    return _layer_cause(call)


def _layer_cause(call: Call) -> Cause | None:
    layers = called_layers(call)
    lookup = next((layer for layer in layers if layer.callee in _LOOKUP_LAYERS), None)
    if lookup is not None:
        return Cause("lookup", lookup.callee)
    weighted = any(layer.callee not in _STATELESS_LAYERS | {"keras.Input"} for layer in layers)
    return Cause("variable", "a model's weights") if weighted and isinstance(call.receiver, Model) else None


def called_layers(call: Call) -> list[Call]:
    """Return the constructions of the Keras layers that `call` runs: one layer, or those of a model."""
    if not call.callee.endswith(".__call__"):
        return []
    if isinstance(call.receiver, Model):
        return call.receiver.layers
    made = call.receiver
    return [made.call] if isinstance(made, Produced) and made.callee.startswith("keras.layers.") else []


def is_random(call: Call, *, stateless_too: bool = False) -> bool:
    """Say whether `call` draws random numbers in a graph; ops with explicit seeds only where `stateless_too`."""
    name = call.callee
    if name.startswith(("tf.image.stateless_random", "tf.random.stateless_")):
        return stateless_too
    if name.startswith("tf.random."):
        return not name.startswith(_NOT_RANDOM) and not name.endswith((".from_seed", ".Generator", ".split"))
    if name.startswith(("tf.image.random_", "tf.compat.v1.random", "keras.backend.random_")):
        return not name.endswith("_seed")
    if name.startswith("keras.random."):
        # With a literal seed Keras draws the same numbers every time and keeps no state (measured on Keras 3.15).
        return call.argument("seed") is None and not name.endswith((".SeedGenerator", ".set_seed"))
    return name in ("tf.image.sample_distorted_bounding_box", "tf.nn.dropout") or bool(random_layers(call))


def random_layers(call: Call) -> list[Call]:
    """Return the random layers that `call` runs, none where it says ``training=False``."""
    if literal(call.argument("training")) is False:
        return []
    return [layer for layer in called_layers(call) if layer.callee.startswith("keras.layers.Random")]


def spoken(call: Call) -> str:
    """Return the name of what `call` draws with: the random layer behind it, or the op itself."""
    layers = random_layers(call)
    return layers[0].callee if layers else call.callee


def has_work(stage: Stage) -> bool | None:
    """Say whether the stage's function does more than move tensors about; None where it cannot be read."""
    if stage.function is None:
        return None
    if any(_is_work(call) for call in stage.calls):
        return True
    return None if any(not call.callee for call in stage.calls) else False


def only_draws(stage: Stage) -> bool:
    """Say whether the function draws plain random numbers and does nothing else that costs: a little noise."""
    working = [call for call in stage.calls if _is_work(call)]
    return bool(working) and all(call.callee.startswith("tf.random.") for call in working)


def _is_work(call: Call) -> bool:
    return call.callee.startswith(("tf.", "keras.")) and call.callee not in TRIVIAL


def reads_files(calls: Iterable[Call]) -> Call | None:
    """Return the first of `calls` that reads a file, None where none is seen."""
    return next((call for call in calls if call.callee in FILE_READS), None)


def library_call(call: Call) -> bool:
    """Say whether `call` reads a file or does sample work in a Python library (images, audio, tables, text)."""
    return call.callee in FILE_READS or call.callee.partition(".")[0] in PYTHON_LIBRARIES
