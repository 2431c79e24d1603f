"""What is known of TensorFlow's and Keras' interfaces: the one place that says which call is what.

Signatures are those of TF 2.21 and Keras 3.15 with the arguments of older versions added behind; positions of the
shared ones have not moved since TF 2.4 (checked against the wheels of 2.5, 2.10, 2.15 and 2.21).
"""

from __future__ import annotations

import functools

#: Parameter names by canonical name, in order.
SIGNATURES: dict[str, tuple[str, ...]] = {
    name: tuple(parameters.split())
    for name, parameters in {
        # --- tf.data: transformations
        "tf.data.Dataset.map": "map_func num_parallel_calls deterministic synchronous "
        "use_unbounded_threadpool name",
        "tf.data.Dataset.batch": "batch_size drop_remainder num_parallel_calls deterministic name",
        "tf.data.Dataset.padded_batch": "batch_size padded_shapes padding_values drop_remainder name",
        "tf.data.Dataset.ragged_batch": "batch_size drop_remainder row_splits_dtype name",
        "tf.data.Dataset.shuffle": "buffer_size seed reshuffle_each_iteration name",
        "tf.data.Dataset.prefetch": "buffer_size name",
        "tf.data.Dataset.cache": "filename name",
        "tf.data.Dataset.repeat": "count name",
        "tf.data.Dataset.take": "count name",
        "tf.data.Dataset.skip": "count name",
        "tf.data.Dataset.shard": "num_shards index name",
        "tf.data.Dataset.filter": "predicate name",
        "tf.data.Dataset.interleave": "map_func cycle_length block_length num_parallel_calls deterministic name",
        "tf.data.Dataset.flat_map": "map_func name",
        "tf.data.Dataset.window": "size shift stride drop_remainder name",
        "tf.data.Dataset.apply": "transformation_func",
        "tf.data.Dataset.with_options": "options name",
        "tf.data.Dataset.concatenate": "dataset name",
        "tf.data.Dataset.unbatch": "name",
        "tf.data.Dataset.rebatch": "batch_size drop_remainder name",
        "tf.data.Dataset.enumerate": "start name",
        "tf.data.Dataset.scan": "initial_state scan_func name",
        "tf.data.Dataset.take_while": "predicate name",
        "tf.data.Dataset.snapshot": "path compression reader_func shard_func name",
        "tf.data.Dataset.group_by_window": "key_func reduce_func window_size window_size_func name",
        "tf.data.Dataset.bucket_by_sequence_length": "element_length_func bucket_boundaries bucket_batch_sizes "
        "padded_shapes padding_values pad_to_bucket_boundary no_padding drop_remainder name",
        "tf.data.Dataset.rejection_resample": "class_func target_dist initial_dist seed name",
        "tf.data.Dataset.reduce": "initial_state reduce_func name",
        # --- tf.data: sources
        "tf.data.Dataset.from_tensor_slices": "tensors name",
        "tf.data.Dataset.from_tensors": "tensors name",
        "tf.data.Dataset.from_generator": "generator output_types output_shapes args output_signature name",
        "tf.data.Dataset.range": "start stop step",
        "tf.data.Dataset.list_files": "file_pattern shuffle seed name",
        "tf.data.Dataset.zip": "datasets name",
        "tf.data.Dataset.random": "seed rerandomize_each_iteration name",
        "tf.data.Dataset.load": "path element_spec compression reader_func",
        "tf.data.Dataset.sample_from_datasets": "datasets weights seed stop_on_empty_dataset",
        "tf.data.Dataset.choose_from_datasets": "datasets choice_dataset stop_on_empty_dataset",
        "tf.data.TFRecordDataset": "filenames compression_type buffer_size num_parallel_reads name",
        "tf.data.TextLineDataset": "filenames compression_type buffer_size num_parallel_reads name",
        "tf.data.FixedLengthRecordDataset": "filenames record_bytes header_bytes footer_bytes buffer_size "
        "compression_type num_parallel_reads name",
        "tf.data.experimental.CsvDataset": "filenames record_defaults compression_type buffer_size header",
        "tf.data.experimental.make_csv_dataset": "file_pattern batch_size column_names column_defaults label_name "
        "select_columns field_delim use_quote_delim na_value header num_epochs shuffle shuffle_buffer_size "
        "shuffle_seed prefetch_buffer_size num_parallel_reads sloppy num_rows_for_inference compression_type",
        "tf.data.experimental.make_batched_features_dataset": "file_pattern batch_size features reader label_key "
        "reader_args num_epochs shuffle shuffle_buffer_size shuffle_seed prefetch_buffer_size reader_num_threads "
        "parser_num_threads sloppy_ordering drop_final_batch",
        "tf.data.experimental.parallel_interleave": "map_func cycle_length block_length sloppy",
        "tf.data.experimental.map_and_batch": "map_func batch_size num_parallel_batches drop_remainder "
        "num_parallel_calls",
        "tf.data.experimental.shuffle_and_repeat": "buffer_size count seed",
        "tf.data.experimental.prefetch_to_device": "device buffer_size",
        "keras.utils.image_dataset_from_directory": "directory labels label_mode class_names "
        "color_mode batch_size "
        "image_size shuffle seed validation_split subset interpolation follow_links crop_to_aspect_ratio "
        "pad_to_aspect_ratio data_format format verbose",
        "keras.utils.text_dataset_from_directory": "directory labels label_mode class_names batch_size max_length "
        "shuffle seed validation_split subset follow_links verbose",
        "keras.utils.audio_dataset_from_directory": "directory labels label_mode class_names "
        "batch_size sampling_rate "
        "output_sequence_length ragged shuffle seed validation_split subset follow_links verbose",
        "keras.utils.timeseries_dataset_from_array": "data targets sequence_length sequence_stride sampling_rate "
        "batch_size shuffle seed start_index end_index",
        "tensorflow_datasets.load": "name split data_dir batch_size shuffle_files download as_supervised decoders "
        "read_config with_info builder_kwargs download_and_prepare_kwargs as_dataset_kwargs try_gcs",
        "tf.strided_slice": "input_ begin end",
        # --- Keras: training
        "keras.Model.fit": "x y batch_size epochs verbose callbacks validation_split validation_data shuffle "
        "class_weight sample_weight initial_epoch steps_per_epoch validation_steps validation_batch_size "
        "validation_freq max_queue_size workers use_multiprocessing",
        "keras.Model.fit_generator": "generator steps_per_epoch epochs verbose callbacks validation_data "
        "validation_steps validation_freq class_weight max_queue_size workers use_multiprocessing shuffle "
        "initial_epoch",
        "keras.Model.evaluate": "x y batch_size verbose sample_weight steps callbacks return_dict",
        "keras.Model.predict": "x batch_size verbose steps callbacks",
        "keras.Model.train_on_batch": "x y sample_weight class_weight return_dict",
        "keras.Model.test_on_batch": "x y sample_weight return_dict",
        "keras.Model.predict_on_batch": "x",
        "keras.Model.compile": "optimizer loss metrics loss_weights weighted_metrics run_eagerly "
        "steps_per_execution jit_compile auto_scale_loss",
        "keras.Model": "inputs outputs name",
        "keras.Sequential": "layers trainable name",
        "keras.Input": "shape batch_size dtype sparse batch_shape name tensor ragged",
        "keras.models.load_model": "filepath custom_objects compile safe_mode",
        "keras.Model.save": "filepath overwrite",
        "keras.Model.save_weights": "filepath overwrite",
        # --- Keras: layers with rules about their arguments
        "keras.layers.Dense": "units activation use_bias",
        "keras.layers.Conv1D": "filters kernel_size strides padding",
        "keras.layers.Conv2D": "filters kernel_size strides padding",
        "keras.layers.Conv3D": "filters kernel_size strides padding",
        "keras.layers.Embedding": "input_dim output_dim",
        "keras.layers.LSTM": "units activation recurrent_activation use_bias",
        "keras.layers.GRU": "units activation recurrent_activation use_bias",
        "keras.layers.SimpleRNN": "units activation use_bias",
        "keras.layers.RNN": "cell return_sequences return_state go_backwards stateful unroll",
        "keras.layers.Bidirectional": "layer merge_mode weights backward_layer",
        "keras.layers.TimeDistributed": "layer",
        "keras.layers.Lambda": "function output_shape mask arguments",
        "keras.layers.Rescaling": "scale offset",
        "keras.optimizers.Optimizer.apply_gradients": "grads_and_vars name",
        "keras.optimizers.Optimizer.apply": "grads trainable_variables",
        "keras.optimizers.Optimizer.minimize": "loss var_list tape",
        "keras.callbacks.ModelCheckpoint": "filepath monitor verbose save_best_only save_weights_only "
        "mode save_freq",
        "keras.callbacks.TensorBoard": "log_dir histogram_freq write_graph write_images write_steps_per_second "
        "update_freq profile_batch embeddings_freq",
        "keras.callbacks.LambdaCallback": "on_epoch_begin on_epoch_end on_train_begin on_train_end "
        "on_train_batch_begin on_train_batch_end",
        "keras.mixed_precision.set_global_policy": "policy",
        "keras.backend.set_floatx": "value",
        # --- tf: graphs, devices, memory
        "tf.function": "func input_signature autograph jit_compile reduce_retracing experimental_implements "
        "experimental_autograph_options experimental_attributes experimental_relax_shapes experimental_compile",
        "tf.py_function": "func inp Tout name",
        "tf.numpy_function": "func inp Tout stateful name",
        "tf.compat.v1.py_func": "func inp Tout stateful name",
        "tf.map_fn": "fn elems dtype parallel_iterations back_prop swap_memory infer_shape name "
        "fn_output_signature",
        "tf.vectorized_map": "fn elems fallback_to_while_loop",
        "tf.scan": "fn elems initializer parallel_iterations",
        "tf.foldl": "fn elems initializer",
        "tf.foldr": "fn elems initializer",
        "tf.while_loop": "cond body loop_vars shape_invariants parallel_iterations",
        "tf.device": "device_name",
        "tf.cond": "pred true_fn false_fn name",
        "tf.where": "condition x y name",
        "tf.cast": "x dtype name",
        "tf.image.resize": "images size method preserve_aspect_ratio antialias name",
        "tf.image.convert_image_dtype": "image dtype saturate name",
        "tf.config.run_functions_eagerly": "run_eagerly",
        "tf.config.set_visible_devices": "devices device_type",
        "tf.config.experimental.set_memory_growth": "device enable",
        "tf.config.set_logical_device_configuration": "device logical_devices",
        "tf.config.LogicalDeviceConfiguration": "memory_limit experimental_priority",
        "tf.config.optimizer.set_jit": "enabled",
        "tf.distribute.MirroredStrategy": "devices cross_device_ops",
        "tf.distribute.OneDeviceStrategy": "device",
        "tf.distribute.Strategy.run": "fn args kwargs options",
        "tf.distribute.Strategy.experimental_distribute_dataset": "dataset options",
        "tf.distribute.Strategy.distribute_datasets_from_function": "dataset_fn options",
        "tf.distribute.Strategy.experimental_distribute_datasets_from_function": "dataset_fn options",
        "tf.GradientTape": "persistent watch_accessed_variables",
        "tf.GradientTape.gradient": "target sources output_gradients unconnected_gradients",
        "tf.Variable": "initial_value trainable validate_shape caching_device name variable_def dtype",
        "numpy.load": "file mmap_mode",
        "builtins.open": "file mode",
        "functools.partial": "func",
    }.items()
}
for _rnn in ("LSTM", "GRU"):
    SIGNATURES[f"keras.layers.{_rnn}Cell"] = SIGNATURES[f"keras.layers.{_rnn}"]

#: Sources of datasets: canonical name → the stage's op.
DATASET_SOURCES: dict[str, str] = {
    **{
        name: name.rpartition(".")[2]
        for name in SIGNATURES
        if name.startswith("tf.data.")
        and name.rpartition(".")[2]
        in """
    from_tensor_slices from_tensors from_generator range list_files random load TFRecordDataset
    TextLineDataset FixedLengthRecordDataset CsvDataset make_csv_dataset
    make_batched_features_dataset
    """.split()
    },
    "tf.data.experimental.SqlDataset": "SqlDataset",
    "tf.data.experimental.RandomDataset": "random",
    "tf.data.experimental.load": "load",
    "keras.utils.image_dataset_from_directory": "image_dataset_from_directory",
    "keras.utils.text_dataset_from_directory": "text_dataset_from_directory",
    "keras.utils.audio_dataset_from_directory": "audio_dataset_from_directory",
    "keras.utils.timeseries_dataset_from_array": "timeseries_dataset_from_array",
    "tensorflow_datasets.load": "tfds",
    "tensorflow_datasets.builder().as_dataset": "tfds",
}

#: Functions that join datasets into one.
DATASET_JOINS = frozenset(
    {
        "tf.data.Dataset.zip",
        "tf.data.Dataset.sample_from_datasets",
        "tf.data.Dataset.choose_from_datasets",
        "tf.data.experimental.sample_from_datasets",
        "tf.data.experimental.choose_from_datasets",
    }
)

#: Methods that return a dataset.
DATASET_METHODS = frozenset(
    name.rpartition(".")[2]
    for name in SIGNATURES
    if name.startswith("tf.data.Dataset.") and name not in DATASET_SOURCES and name not in DATASET_JOINS
) - {"reduce", "apply", "with_options", "zip"}

#: Functions given to ``Dataset.apply``: name → the op they stand for.
DATASET_APPLY = {
    "tf.data.experimental.map_and_batch": "map_and_batch",
    "tf.data.experimental.parallel_interleave": "interleave",
    "tf.data.experimental.shuffle_and_repeat": "shuffle",
    "tf.data.experimental.unbatch": "unbatch",
    "tf.data.experimental.prefetch_to_device": "prefetch",
    "tf.data.experimental.copy_to_device": "copy_to_device",
    "tf.data.experimental.ignore_errors": "ignore_errors",
    "tf.data.experimental.assert_cardinality": "assert_cardinality",
    "tf.data.experimental.enumerate_dataset": "enumerate",
    "tf.data.experimental.dense_to_ragged_batch": "ragged_batch",
    "tf.data.experimental.dense_to_sparse_batch": "batch",
    "tf.data.experimental.bucket_by_sequence_length": "bucket_by_sequence_length",
    "tf.data.experimental.group_by_window": "group_by_window",
    "tf.data.experimental.group_by_reducer": "group_by_window",
    "tf.data.experimental.rejection_resample": "rejection_resample",
    "tf.data.experimental.scan": "scan",
    "tf.data.experimental.snapshot": "snapshot",
    "tf.data.experimental.take_while": "take_while",
    "tf.data.experimental.unique": "unique",
    "tf.data.experimental.cardinality": "cardinality",
}

#: Stages that take a function: op → (parameter, how many of its arguments come from the element).
STAGE_FUNCTIONS = {
    "map": "map_func",
    "interleave": "map_func",
    "flat_map": "map_func",
    "filter": "predicate",
    "take_while": "predicate",
    "scan": "scan_func",
    "map_and_batch": "map_func",
    "group_by_window": "reduce_func",
}

#: What the results of constructors are, where methods are asked of them; longest prefix wins.
TYPES: tuple[tuple[str, str], ...] = (
    ("keras.optimizers.schedules.", "keras.optimizers.schedules.LearningRateSchedule"),
    ("keras.optimizers.", "keras.optimizers.Optimizer"),
    ("keras.metrics.", "keras.metrics.Metric"),
    ("keras.losses.", "keras.losses.Loss"),
    ("keras.layers.", "keras.layers.Layer"),
    ("keras_cv.layers.", "keras.layers.Layer"),
    ("keras_hub.layers.", "keras.layers.Layer"),
    ("keras_nlp.layers.", "keras.layers.Layer"),
    ("tensorflow_addons.layers.", "keras.layers.Layer"),
    ("tensorflow_addons.optimizers.", "keras.optimizers.Optimizer"),
    ("tensorflow_hub.KerasLayer", "keras.layers.Layer"),
    ("tf.distribute.", "tf.distribute.Strategy"),
    ("tf.train.CheckpointManager", "tf.train.CheckpointManager"),
    ("tf.train.Checkpoint", "tf.train.Checkpoint"),
    ("tf.train.", "keras.optimizers.Optimizer"),
    ("tf.compat.v1.train.", "keras.optimizers.Optimizer"),
    ("tf.random.Generator", "tf.random.Generator"),
    ("keras.optimizers.LossScaleOptimizer", "keras.optimizers.Optimizer"),
)

#: Distribution strategies by constructor.
STRATEGIES = frozenset(
    f"tf.distribute.{name}"
    for name in (
        "MirroredStrategy",
        "MultiWorkerMirroredStrategy",
        "TPUStrategy",
        "ParameterServerStrategy",
        "OneDeviceStrategy",
        "experimental.CentralStorageStrategy",
        "get_strategy",
    )
)

#: Classes whose project subclasses are models.
MODEL_CLASSES = ("keras.Model", "keras.Sequential")

#: Classes whose project subclasses are layers.
LAYER_CLASSES = ("keras.layers.Layer", "tf.Module")

#: Model methods that the views know as calls of ``keras.Model``.
MODEL_METHODS = frozenset(
    """
    fit fit_generator evaluate evaluate_generator predict predict_generator train_on_batch
    test_on_batch predict_on_batch compile build summary save save_weights load_weights get_weights
    set_weights export add add_loss add_metric count_params get_layer make_train_function
    reset_metrics reset_states
    """.split()
)

#: Methods of callbacks that Keras calls for every training batch.
BATCH_CALLBACKS = ("on_train_batch_end", "on_train_batch_begin", "on_batch_end", "on_batch_begin")

#: Methods of callbacks that Keras calls once an epoch or less, or outside training.
EPOCH_CALLBACKS = (
    "on_epoch_end",
    "on_epoch_begin",
    "on_train_end",
    "on_train_begin",
    "on_test_end",
    "on_test_begin",
    "on_test_batch_begin",
    "on_test_batch_end",
    "on_predict_batch_begin",
    "on_predict_batch_end",
)

#: Method names that only Keras, TensorFlow and NumPy have, so that they are known on a receiver of unknown type.
DISTINCT_METHODS = {
    "reshape": "numpy.ndarray.reshape",
    "astype": "numpy.ndarray.astype",
    "apply_gradients": "keras.optimizers.Optimizer.apply_gradients",
    "train_on_batch": "keras.Model.train_on_batch",
    "predict_on_batch": "keras.Model.predict_on_batch",
    "fit_generator": "keras.Model.fit_generator",
    "experimental_distribute_dataset": "tf.distribute.Strategy.experimental_distribute_dataset",
    "distribute_datasets_from_function": "tf.distribute.Strategy.distribute_datasets_from_function",
}

#: Keywords that tell Keras' ``fit``/``predict``/``compile`` from a namesake in another library.
DISTINCT_KEYWORDS = {
    "fit": ("epochs", "steps_per_epoch", "validation_data", "callbacks", "validation_split", "batch_size"),
    "predict": ("batch_size", "steps", "verbose"),
    "evaluate": ("batch_size", "steps", "verbose"),
    "compile": ("optimizer", "loss", "metrics"),
}

#: Calls that return what they are given, as far as the views care: canonical name → position of the value.
TRANSPARENT = {
    "tqdm.tqdm": 0,
    "tqdm.auto.tqdm": 0,
    "tqdm.notebook.tqdm": 0,
    "tqdm.trange": 0,
    "tqdm.tqdm_notebook": 0,
    "rich.progress.track": 0,
    "copy.copy": 0,
    "copy.deepcopy": 0,
    "builtins.list": 0,
    "builtins.tuple": 0,
    "builtins.reversed": 0,
    "builtins.sorted": 0,
    "builtins.iter": 0,
    "contextlib.nullcontext": 0,
    "asyncio.run": 0,
    "asyncio.create_task": 0,
    "asyncio.wait_for": 0,
    "fastprogress.progress_bar": 0,
    "tensorflow_datasets.as_numpy": 0,
    "typing.cast": 1,
    "tf.autograph.experimental.do_not_convert": 0,
    "tf.stop_gradient": 0,
    "tf.identity": 0,
}


@functools.lru_cache(maxsize=8192)
def position_of(callee: str, parameter: str) -> int | None:
    """Return the position of `parameter` in the signature of `callee`, None where it is not known."""
    signature = SIGNATURES.get(callee)
    if signature is None or parameter not in signature:
        return None
    return signature.index(parameter)


@functools.lru_cache(maxsize=8192)
def type_of(callee: str) -> str | None:
    """Return the type whose methods the result of `callee` has, None where it is not known."""
    last = callee.rpartition(".")[2]
    if not last[:1].isupper() and callee not in STRATEGIES:
        return None
    return next((kind for prefix, kind in TYPES if callee.startswith(prefix)), None)
