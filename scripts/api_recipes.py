"""Calls that guessing cannot reach, and those whose ops depend on an argument: data for the kernel table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class Recipe:
    """One call of an API: `run` over `inputs`, under the conditions `when` on its arguments (none: any call).

    A condition is ``(argument, values)``, or ``(argument, "sparse" | "ragged")`` for the kind of tensor passed.
    """

    api: str
    run: Callable[..., Any]
    inputs: tuple[str, ...]
    when: tuple[tuple[str, Any], ...] = ()
    also: tuple[str, ...] = field(default=())


def _resize(method: str, **options: Any) -> Callable[..., Any]:
    return lambda x: tf.image.resize(x, [8, 8], method=method, **options)


def _keras_layer(make: Callable[[], Any]) -> Callable[..., Any]:
    made: list[Any] = []

    def run(x: Any) -> Any:
        if not made:
            made.append(make())
        return made[0](x)

    return run


_SMOOTH = ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")
_DENSE_LABELS = tf.constant(np.ones((4, 3)), tf.int32)
_SPARSE_LABELS = tf.sparse.from_dense(_DENSE_LABELS)
_LENGTHS = tf.constant([16] * 4)


def _time_major(x: Any) -> Any:
    return tf.transpose(x, [1, 0, 2])


RECIPES: tuple[Recipe, ...] = (
    Recipe("tf.image.resize", _resize("bicubic"), ("images",), (("method", ("bicubic",)),)),
    Recipe("tf.image.resize", _resize("area"), ("images",), (("method", ("area",)),)),
    Recipe("tf.image.resize", _resize("lanczos3"), ("images",), (("method", _SMOOTH),)),
    Recipe(
        "tf.image.resize",
        _resize("bilinear", antialias=True),
        ("images",),
        (("method", (None, "bilinear", "bicubic", *_SMOOTH)), ("antialias", (True,))),
    ),
    Recipe(
        "tf.image.resize_with_pad",
        lambda x: tf.image.resize_with_pad(x, 8, 8, method="bicubic"),
        ("images",),
        (("method", ("bicubic",)),),
    ),
    Recipe(
        "tf.image.resize_with_pad",
        lambda x: tf.image.resize_with_pad(x, 8, 8, method="area"),
        ("images",),
        (("method", ("area",)),),
    ),
    Recipe(
        "tf.image.resize_with_pad",
        lambda x: tf.image.resize_with_pad(x, 8, 8, antialias=True),
        ("images",),
        (("antialias", (True,)),),
    ),
    Recipe(
        "tf.compat.v1.image.resize",
        lambda x: tf.compat.v1.image.resize(x, [8, 8], method=2),
        ("images",),
        (("method", (2, "bicubic")),),
    ),
    Recipe(
        "tf.compat.v1.image.resize",
        lambda x: tf.compat.v1.image.resize(x, [8, 8], method=3),
        ("images",),
        (("method", (3, "area")),),
    ),
    Recipe(
        "tf.compat.v1.image.resize_bicubic", lambda x: tf.compat.v1.image.resize_bicubic(x, [8, 8]), ("images",)
    ),
    Recipe("tf.compat.v1.image.resize_area", lambda x: tf.compat.v1.image.resize_area(x, [8, 8]), ("images",)),
    Recipe(
        "keras.layers.Resizing",
        _keras_layer(lambda: keras.layers.Resizing(8, 8, interpolation="bicubic")),
        ("images",),
        (("interpolation", ("bicubic",)),),
    ),
    Recipe(
        "keras.layers.Resizing",
        _keras_layer(lambda: keras.layers.Resizing(8, 8, interpolation="area")),
        ("images",),
        (("interpolation", ("area",)),),
    ),
    Recipe(
        "keras.layers.Resizing",
        _keras_layer(lambda: keras.layers.Resizing(8, 8, interpolation="lanczos3")),
        ("images",),
        (("interpolation", _SMOOTH),),
    ),
    Recipe(
        "keras.layers.UpSampling2D",
        _keras_layer(lambda: keras.layers.UpSampling2D(2, interpolation="bicubic")),
        ("images",),
        (("interpolation", ("bicubic",)),),
    ),
    Recipe(
        "keras.layers.UpSampling2D",
        _keras_layer(lambda: keras.layers.UpSampling2D(2, interpolation="lanczos3")),
        ("images",),
        (("interpolation", ("lanczos3", "lanczos5")),),
    ),
    Recipe(
        "keras.ops.image.resize",
        lambda x: keras.ops.image.resize(x, (8, 8), interpolation="bicubic"),
        ("images",),
        (("interpolation", ("bicubic",)),),
    ),
    Recipe(
        "keras.ops.image.resize",
        lambda x: keras.ops.image.resize(x, (8, 8), interpolation="lanczos3"),
        ("images",),
        (("interpolation", ("lanczos3", "lanczos5")),),
    ),
    Recipe(
        "keras.ops.image.resize",
        lambda x: keras.ops.image.resize(x, (8, 8), antialias=True),
        ("images",),
        (("antialias", (True,)),),
    ),
    Recipe(
        "tf.nn.ctc_loss",
        lambda x: tf.nn.ctc_loss(_SPARSE_LABELS, _time_major(x), None, _LENGTHS, blank_index=-1),
        ("cube",),
        (("labels", "sparse"),),
    ),
    Recipe(
        "tf.compat.v1.nn.ctc_loss",
        lambda x: tf.compat.v1.nn.ctc_loss(_SPARSE_LABELS, _time_major(x), _LENGTHS),
        ("cube",),
    ),
    Recipe(
        "keras.backend.ctc_batch_cost",
        lambda x: tf.keras.backend.ctc_batch_cost(
            _DENSE_LABELS, tf.nn.softmax(x), tf.fill([4, 1], 16), tf.fill([4, 1], 3)
        ),
        ("cube",),
    ),
    Recipe(
        "keras.backend.ctc_decode",
        lambda x: tf.keras.backend.ctc_decode(tf.nn.softmax(x), _LENGTHS)[0][0],
        ("cube",),
    ),
    Recipe(
        "keras.ops.ctc_decode",
        lambda x: keras.ops.ctc_decode(x, _LENGTHS)[0],
        ("cube",),
        also=("keras.ops.nn.ctc_decode",),
    ),
    Recipe("keras.losses.CTC", lambda x: keras.losses.CTC()(_DENSE_LABELS, x), ("cube",)),
    Recipe(
        "keras.ops.ctc_loss",
        lambda x: keras.ops.ctc_loss(_DENSE_LABELS, x, tf.fill([4], 3), _LENGTHS),
        ("cube",),
        also=("keras.ops.nn.ctc_loss",),
    ),
    Recipe("tf.nn.ctc_greedy_decoder", lambda x: tf.nn.ctc_greedy_decoder(_time_major(x), _LENGTHS)[1], ("cube",)),
    Recipe(
        "tf.nn.ctc_beam_search_decoder",
        lambda x: tf.nn.ctc_beam_search_decoder(_time_major(x), _LENGTHS)[1],
        ("cube",),
    ),
    Recipe(
        "tf.compat.v1.nn.ctc_beam_search_decoder",
        lambda x: tf.compat.v1.nn.ctc_beam_search_decoder(_time_major(x), _LENGTHS)[1],
        ("cube",),
    ),
    Recipe(
        "tf.edit_distance",
        lambda x: tf.edit_distance(
            tf.sparse.from_dense(tf.cast(x * 9, tf.int64)), tf.sparse.from_dense(tf.cast(x * 5, tf.int64))
        ),
        ("matrix",),
    ),
    Recipe(
        "tf.linalg.lstsq",
        lambda x, y: tf.linalg.lstsq(x, y, fast=False),
        ("matrix", "matrix"),
        (("fast", (False,)),),
    ),
    Recipe("tf.nn.fractional_max_pool", lambda x: tf.nn.fractional_max_pool(x, [1.0, 1.4, 1.4, 1.0]), ("images",)),
    Recipe("tf.nn.fractional_avg_pool", lambda x: tf.nn.fractional_avg_pool(x, [1.0, 1.4, 1.4, 1.0]), ("images",)),
    Recipe(
        "tf.nn.sampled_softmax_loss",
        lambda w, x: tf.nn.sampled_softmax_loss(w, tf.zeros([16]), tf.zeros([16, 1], tf.int64), x, 4, 16),
        ("matrix", "matrix"),
    ),
    Recipe(
        "tf.nn.nce_loss",
        lambda w, x: tf.nn.nce_loss(w, tf.zeros([16]), tf.zeros([16, 1], tf.int64), x, 4, 16),
        ("matrix", "matrix"),
    ),
    Recipe("tf.unravel_index", lambda i: tf.unravel_index(i, [16, 16]), ("ints",)),
    Recipe(
        "tf.image.draw_bounding_boxes",
        lambda x, b: tf.image.draw_bounding_boxes(x, tf.tile(b[None], [2, 1, 1]), tf.ones([1, 3])),
        ("images", "boxes"),
    ),
    Recipe(
        "tf.image.sample_distorted_bounding_box",
        lambda b: tf.image.sample_distorted_bounding_box([64, 64, 3], b[None], min_object_covered=0.5),
        ("boxes",),
    ),
    Recipe(
        "tf.image.stateless_sample_distorted_bounding_box",
        lambda b: tf.image.stateless_sample_distorted_bounding_box(
            [64, 64, 3], b[None], [1, 2], min_object_covered=0.5
        ),
        ("boxes",),
    ),
    Recipe(
        "tf.image.extract_glimpse", lambda x: tf.image.extract_glimpse(x, [8, 8], tf.zeros([2, 2])), ("images",)
    ),
    Recipe(
        "tf.image.crop_and_resize",
        lambda x, b: tf.image.crop_and_resize(x, b, tf.zeros([16], tf.int32), [8, 8]),
        ("images", "boxes"),
    ),
    Recipe("tf.image.non_max_suppression", lambda b: tf.image.non_max_suppression(b, b[:, 0], 8), ("boxes",)),
    Recipe(
        "tf.image.non_max_suppression_padded",
        lambda b: tf.image.non_max_suppression_padded(b, b[:, 0], 8, pad_to_max_output_size=True),
        ("boxes",),
    ),
    Recipe(
        "tf.image.non_max_suppression_with_scores",
        lambda b: tf.image.non_max_suppression_with_scores(b, b[:, 0], 8),
        ("boxes",),
    ),
    Recipe(
        "tf.image.non_max_suppression_overlaps",
        lambda b: tf.image.non_max_suppression_overlaps(tf.matmul(b, b, transpose_b=True), b[:, 0], 8),
        ("boxes",),
    ),
    Recipe(
        "tf.image.combined_non_max_suppression",
        lambda b: tf.image.combined_non_max_suppression(b[None, :, None], b[None, :, :2], 4, 8),
        ("boxes",),
    ),
    Recipe("tf.image.adjust_jpeg_quality", lambda x: tf.image.adjust_jpeg_quality(x, 50), ("image",)),
    Recipe("tf.image.random_jpeg_quality", lambda x: tf.image.random_jpeg_quality(x, 40, 60), ("image",)),
    Recipe(
        "tf.image.stateless_random_jpeg_quality",
        lambda x: tf.image.stateless_random_jpeg_quality(x, 40, 60, [1, 2]),
        ("image",),
    ),
    Recipe(
        "tf.sparse.sparse_dense_matmul",
        lambda s, x: tf.sparse.sparse_dense_matmul(s, x),
        ("sparse", "matrix"),
        also=("tf.sparse.matmul",),
    ),
    Recipe("tf.sparse.add", lambda s: tf.sparse.add(s, s), ("sparse",), (("a", "sparse"), ("b", "sparse"))),
    Recipe("tf.sparse.cross", lambda s: tf.sparse.cross([tf.sparse.from_dense(s)]), ("int_matrix",)),
    Recipe("tf.sparse.cross_hashed", lambda s: tf.sparse.cross_hashed([tf.sparse.from_dense(s)]), ("int_matrix",)),
    Recipe("tf.sparse.concat", lambda s: tf.sparse.concat(0, [s, s]), ("sparse",)),
    Recipe(
        "tf.nn.embedding_lookup_sparse",
        lambda w, s: tf.nn.embedding_lookup_sparse(w, tf.sparse.from_dense(s + 1), None),
        ("matrix", "int_matrix"),
    ),
    Recipe(
        "tf.nn.safe_embedding_lookup_sparse",
        lambda w, s: tf.nn.safe_embedding_lookup_sparse(w, tf.cast(tf.sparse.from_dense(s + 1), tf.int64)),
        ("matrix", "int_matrix"),
    ),
    Recipe("tf.RaggedTensor.to_tensor", lambda r: r.to_tensor(), ("ragged",)),
    Recipe("tf.RaggedTensor.from_tensor", lambda x: tf.RaggedTensor.from_tensor(x).flat_values, ("matrix",)),
    Recipe("tf.gather", lambda r: tf.gather(r, [0, 1, 2]), ("ragged",), (("params", "ragged"),)),
    Recipe("tf.ragged.range", lambda i: tf.ragged.range(i), ("ints",)),
    Recipe("tf.ragged.boolean_mask", lambda x, b: tf.ragged.boolean_mask(x, b), ("matrix", "bools")),
    Recipe(
        "tf.lookup.StaticHashTable.lookup",
        lambda i: tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.range(9), tf.range(9)), -1
        ).lookup(i),
        ("ints",),
    ),
    Recipe(
        "tf.lookup.StaticVocabularyTable.lookup",
        lambda s: tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.range(2, dtype=tf.int64)), 1
        ).lookup(s),
        ("strings",),
    ),
    Recipe(
        "tf.lookup.experimental.DenseHashTable.lookup",
        lambda i: tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -2, -3).lookup(i),
        ("longs",),
    ),
    Recipe(
        "tf.lookup.experimental.MutableHashTable.lookup",
        lambda i: tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1).lookup(i),
        ("longs",),
    ),
    Recipe("tf.numpy_function", lambda x: tf.numpy_function(lambda a: a, [x], tf.float32), ("matrix",)),
    Recipe("tf.py_function", lambda x: tf.py_function(lambda a: a, [x], tf.float32), ("matrix",)),
    Recipe("tf.compat.v1.py_func", lambda x: tf.compat.v1.py_func(lambda a: a, [x], tf.float32), ("matrix",)),
    Recipe("tf.print", lambda x: (tf.print(x), x)[1], ("matrix",)),
    Recipe("tf.strings.format", lambda x: tf.strings.format("{}", x), ("matrix",)),
    Recipe("tf.quantization.quantize", lambda x: tf.quantization.quantize(x, 0.0, 1.0, tf.quint8)[0], ("matrix",)),
    Recipe("tf.random.gamma", lambda x: tf.random.gamma([16], x), ("vector",)),
    Recipe("tf.random.poisson", lambda x: tf.random.poisson([16], x), ("vector",)),
    Recipe("tf.random.shuffle", lambda x: tf.random.shuffle(x), ("matrix",)),
    Recipe(
        "tf.random.experimental.stateless_shuffle",
        lambda x: tf.random.experimental.stateless_shuffle(x, [1, 2]),
        ("matrix",),
    ),
    Recipe(
        "tf.random.stateless_binomial", lambda x: tf.random.stateless_binomial([128], [1, 2], x, 0.5), ("vector",)
    ),
    Recipe("tf.random.stateless_gamma", lambda x: tf.random.stateless_gamma([128], [1, 2], x), ("vector",)),
    Recipe("tf.random.stateless_poisson", lambda x: tf.random.stateless_poisson([128], [1, 2], x), ("vector",)),
    Recipe(
        "tf.random.stateless_parameterized_truncated_normal",
        lambda x: tf.random.stateless_parameterized_truncated_normal([128], [1, 2], x),
        ("vector",),
    ),
    Recipe("tf.random.Generator.binomial", lambda x: _generator().binomial([128], x, 0.5), ("vector",)),
    Recipe("keras.random.binomial", lambda x: keras.random.binomial((128,), x, 0.5, seed=1), ("vector",)),
    Recipe("keras.random.gamma", lambda x: keras.random.gamma((128,), x, seed=1), ("vector",)),
    Recipe("keras.random.beta", lambda x: keras.random.beta((128,), x, x, seed=1), ("vector",)),
    Recipe("keras.random.shuffle", lambda x: keras.random.shuffle(x, seed=1), ("matrix",)),
    Recipe(
        "tf.linalg.banded_triangular_solve",
        lambda x: tf.linalg.banded_triangular_solve(x[:2], x[:, :1]),
        ("matrix",),
    ),
    Recipe("tf.sets.intersection", lambda i: tf.sets.intersection(i, i).values, ("int_matrix",)),
    Recipe("tf.sets.difference", lambda i: tf.sets.difference(i, i).values, ("int_matrix",)),
    Recipe("tf.sets.union", lambda i: tf.sets.union(i, i).values, ("int_matrix",)),
    Recipe("tf.sets.size", lambda i: tf.sets.size(tf.sets.union(i, i)), ("int_matrix",)),
    Recipe("tf.histogram_fixed_width", lambda x: tf.histogram_fixed_width(x, [0.0, 1.0]), ("vector",)),
    Recipe(
        "tf.nn.dilation2d",
        lambda x: tf.nn.dilation2d(x, tf.ones([3, 3, 3]), [1] * 4, "SAME", "NHWC", [1] * 4),
        ("images",),
    ),
    Recipe(
        "tf.nn.erosion2d",
        lambda x: tf.nn.erosion2d(x, tf.ones([3, 3, 3]), [1] * 4, "SAME", "NHWC", [1] * 4),
        ("images",),
    ),
    Recipe("tf.nn.max_pool_with_argmax", lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0], ("images",)),
    Recipe(
        "tf.random.log_uniform_candidate_sampler",
        lambda i: _sampler(tf.random.log_uniform_candidate_sampler, i),
        ("longs",),
    ),
    Recipe(
        "tf.random.uniform_candidate_sampler",
        lambda i: _sampler(tf.random.uniform_candidate_sampler, i),
        ("longs",),
    ),
    Recipe(
        "tf.nn.learned_unigram_candidate_sampler",
        lambda i: _sampler(tf.random.learned_unigram_candidate_sampler, i),
        ("longs",),
        also=("tf.random.learned_unigram_candidate_sampler",),
    ),
    Recipe(
        "tf.random.fixed_unigram_candidate_sampler",
        lambda i: tf.random.fixed_unigram_candidate_sampler(i[:, None], 1, 16, True, 200, unigrams=[1.0] * 200)[0],
        ("longs",),
        also=("tf.nn.fixed_unigram_candidate_sampler",),
    ),
    Recipe(
        "tf.nn.all_candidate_sampler",
        lambda i: tf.nn.all_candidate_sampler(i[:, None], 1, 16, True)[0],
        ("longs",),
        also=("tf.random.all_candidate_sampler",),
    ),
    Recipe(
        "tf.nn.compute_accidental_hits", lambda i: tf.nn.compute_accidental_hits(i[:, None], i, 1)[0], ("longs",)
    ),
    Recipe(
        "tf.compat.v1.nn.sampled_softmax_loss",
        lambda w, x: tf.compat.v1.nn.sampled_softmax_loss(
            w, tf.zeros([16]), tf.zeros([16, 1], tf.int64), x, 4, 16
        ),
        ("matrix", "matrix"),
    ),
    Recipe(
        "tf.compat.v1.nn.nce_loss",
        lambda w, x: tf.compat.v1.nn.nce_loss(w, tf.zeros([16]), tf.zeros([16, 1], tf.int64), x, 4, 16),
        ("matrix", "matrix"),
    ),
    Recipe(
        "tf.compat.v1.image.draw_bounding_boxes",
        lambda x, b: tf.compat.v1.image.draw_bounding_boxes(x, tf.tile(b[None], [2, 1, 1])),
        ("images", "boxes"),
    ),
    Recipe(
        "tf.compat.v1.image.extract_glimpse",
        lambda x: tf.compat.v1.image.extract_glimpse(x, [8, 8], tf.zeros([2, 2])),
        ("images",),
    ),
    Recipe(
        "tf.compat.v1.image.sample_distorted_bounding_box",
        lambda b: tf.compat.v1.image.sample_distorted_bounding_box([64, 64, 3], b[None], min_object_covered=0.5),
        ("boxes",),
    ),
    Recipe(
        "tf.image.decode_and_crop_jpeg",
        lambda s: tf.image.decode_and_crop_jpeg(s, [0, 0, 8, 8]),
        ("string",),
        also=("tf.io.decode_and_crop_jpeg",),
    ),
    Recipe("tf.math.sobol_sample", lambda x: tf.math.sobol_sample(4, 64) + x[0], ("vector",)),
    Recipe(
        "tf.quantization.dequantize",
        lambda x: tf.quantization.dequantize(tf.quantization.quantize(x, 0.0, 1.0, tf.quint8)[0], 0.0, 1.0),
        ("matrix",),
    ),
    Recipe(
        "tf.strings.to_hash_bucket_strong", lambda s: tf.strings.to_hash_bucket_strong(s, 7, [1, 2]), ("strings",)
    ),
    Recipe(
        "tf.strings.unsorted_segment_join",
        lambda s, i: tf.strings.unsorted_segment_join(s, i, 7),
        ("strings", "ints"),
    ),
    Recipe(
        "tf.compat.v1.string_to_number",
        lambda s: tf.compat.v1.string_to_number(s),
        ("strings",),
        also=("tf.compat.v1.strings.to_number",),
    ),
    Recipe("tf.sparse.fill_empty_rows", lambda s: tf.sparse.fill_empty_rows(s, 0.0)[0].values, ("sparse",)),
    Recipe(
        "tf.sparse.to_indicator", lambda i: tf.sparse.to_indicator(tf.sparse.from_dense(i), 8), ("int_matrix",)
    ),
    Recipe("tf.sparse.split", lambda s: tf.sparse.split(s, 2, 1)[0].values, ("sparse",)),
    Recipe("tf.sparse.slice", lambda s: tf.sparse.slice(s, [0, 0], [8, 8]).values, ("sparse",)),
    Recipe("tf.sparse.segment_mean", lambda x: tf.sparse.segment_mean(x, tf.range(16), tf.range(16)), ("matrix",)),
    Recipe(
        "tf.ragged.stack_dynamic_partitions",
        lambda x, i: tf.ragged.stack_dynamic_partitions(x, i, 7).flat_values,
        ("vector", "ints"),
    ),
    Recipe("tf.linalg.eigh_tridiagonal", lambda x: tf.linalg.eigh_tridiagonal(x, x[1:]), ("vector",)),
    Recipe("tf.reverse_sequence", lambda x: tf.reverse_sequence(x, tf.fill([16], 3), seq_axis=1), ("matrix",)),
    Recipe(
        "keras.ops.image.map_coordinates",
        lambda x: keras.ops.image.map_coordinates(x, tf.zeros([2, 64]), 1),
        ("matrix",),
    ),
    Recipe(
        "keras.ops.image.perspective_transform",
        lambda x: keras.ops.image.perspective_transform(
            x,
            tf.constant([[[0.0, 0], [0, 9], [9, 0], [9, 9]]] * 2),
            tf.constant([[[0.0, 0], [0, 8], [9, 0], [9, 9]]] * 2),
        ),
        ("images",),
    ),
)


def _sampler(draw: Callable[..., Any], classes: Any) -> Any:
    return draw(classes[:, None], 1, 16, True, 200)[0]


def _generator() -> Any:
    if not hasattr(_generator, "made"):
        _generator.made = tf.random.Generator.from_seed(1)  # type: ignore[attr-defined]
    return _generator.made  # type: ignore[attr-defined]
