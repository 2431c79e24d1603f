"""The protobuf messages of a profile, declared here so that reading one needs no TensorFlow.

Only the fields that are read are declared. Names are declared as bytes, because some published profiles hold
bad UTF-8 and a ``string`` field refuses the whole file. Large repeated messages are declared as bytes too and
parsed one at a time: a profile of 100 MB would need several times its size as one tree.

Field numbers come from ``xplane.proto``, ``input_pipeline.proto`` and ``overview_page.proto`` of TensorFlow.
"""

from __future__ import annotations

import functools
from typing import Any

_DOUBLE, _INT64, _UINT64, _MESSAGE, _BYTES = 1, 3, 4, 11, 12
_OPTIONAL, _REPEATED = 1, 3

#: Message -> (field, number, type or message, repeated?).
_FIELDS: dict[str, tuple[tuple[str, int, int | str, bool], ...]] = {
    "XSpace": (("planes", 1, _BYTES, True), ("errors", 2, _BYTES, True), ("hostnames", 4, _BYTES, True)),
    "XPlane": (
        ("id", 1, _INT64, False),
        ("name", 2, _BYTES, False),
        ("lines", 3, _BYTES, True),
        ("event_metadata", 4, "EventEntry", True),
        ("stat_metadata", 5, "StatEntry", True),
        ("stats", 6, "XStat", True),
    ),
    "EventEntry": (("key", 1, _INT64, False), ("value", 2, "XEventMetadata", False)),
    "StatEntry": (("key", 1, _INT64, False), ("value", 2, "XStatMetadata", False)),
    "XLine": (
        ("id", 1, _INT64, False),
        ("name", 2, _BYTES, False),
        ("timestamp_ns", 3, _INT64, False),
        ("events", 4, "XEvent", True),
        ("display_name", 11, _BYTES, False),
    ),
    "XEvent": (
        ("metadata_id", 1, _INT64, False),
        ("offset_ps", 2, _INT64, False),
        ("duration_ps", 3, _INT64, False),
        ("stats", 4, _BYTES, True),
    ),
    "XStat": (
        ("metadata_id", 1, _INT64, False),
        ("double_value", 2, _DOUBLE, False),
        ("uint64_value", 3, _UINT64, False),
        ("int64_value", 4, _INT64, False),
        ("str_value", 5, _BYTES, False),
        ("bytes_value", 6, _BYTES, False),
        ("ref_value", 7, _UINT64, False),
    ),
    "XEventMetadata": (
        ("id", 1, _INT64, False),
        ("name", 2, _BYTES, False),
        ("display_name", 4, _BYTES, False),
        ("stats", 5, "XStat", True),
    ),
    "XStatMetadata": (("id", 1, _INT64, False), ("name", 2, _BYTES, False)),
    "Any": (("type_url", 1, _BYTES, False), ("value", 2, _BYTES, False)),
    "StepSummary": (
        ("average", 1, _DOUBLE, False),
        ("minimum", 3, _DOUBLE, False),
        ("maximum", 4, _DOUBLE, False),
    ),
    "StepDetails": (
        ("step_number", 1, _INT64, False),
        ("step_time_ms", 2, _DOUBLE, False),
        ("unknown_time_ms", 3, _DOUBLE, False),
        ("output_ms", 5, _DOUBLE, False),
        ("device_compute_ms", 6, _DOUBLE, False),
        ("device_to_device_ms", 7, _DOUBLE, False),
        ("host_compute_ms", 8, _DOUBLE, False),
        ("host_prepare_ms", 9, _DOUBLE, False),
        ("host_compile_ms", 10, _DOUBLE, False),
        ("host_wait_input_ms", 11, _DOUBLE, False),
        ("host_to_device_ms", 12, _DOUBLE, False),
        ("device_collectives_ms", 13, _DOUBLE, False),
    ),
    "InputPipeline": (
        ("step_time_summary", 2, "StepSummary", False),
        ("input_percent_summary", 3, "StepSummary", False),
        ("step_details", 4, "Any", True),
        ("hardware_type", 9, _BYTES, False),
        ("input_percent", 11, _DOUBLE, False),
    ),
    "OverviewAnalysis": (
        ("device_idle_time_percent", 2, _DOUBLE, False),
        ("device_compute_16bit_percent", 9, _DOUBLE, False),
        ("device_compute_32bit_percent", 10, _DOUBLE, False),
        ("host_op_time_eager_percent", 14, _DOUBLE, False),
        ("device_op_time_eager_percent", 15, _DOUBLE, False),
    ),
    "RunEnvironment": (
        ("host_count", 1, _INT64, False),
        ("device_type", 4, _BYTES, False),
        ("device_core_count", 5, _INT64, False),
    ),
    "OverviewPage": (
        ("input_analysis", 2, "InputPipeline", False),
        ("analysis", 3, "OverviewAnalysis", False),
        ("run_environment", 6, "RunEnvironment", False),
    ),
}


@functools.cache
def message(name: str) -> Any:
    """Return the protobuf class of message `name`; raises `KeyError` for one that is not declared here."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"tflint_gpu.{name}"))


@functools.cache
def _pool() -> Any:
    """Build the descriptors in a pool of their own, so that they never meet TensorFlow's."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(
        name="tflint_gpu/profile.proto", package="tflint_gpu", syntax="proto2"
    )
    for name, fields in _FIELDS.items():
        declared = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            declared.field.add(
                name=field,
                number=number,
                label=_REPEATED if repeated else _OPTIONAL,
                type=_MESSAGE if isinstance(kind, str) else kind,
                type_name=f".tflint_gpu.{kind}" if isinstance(kind, str) else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
