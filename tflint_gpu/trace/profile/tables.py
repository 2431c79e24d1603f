"""Reads the tables that TensorFlow computed beside a profile (``overview_page.pb``, ``input_pipeline.pb``).

Old log folders hold these only. A table counts copies as device compute, and knows no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.trace.evidence import Step
from tflint_gpu.trace.profile.messages import message

#: Bucket -> field of the table.
_FIELDS = {
    "device_compute": "device_compute_ms",
    "device_to_host": "output_ms",
    "device_to_device": "device_to_device_ms",
    "input_wait": "host_wait_input_ms",
    "collectives": "device_collectives_ms",
    "launch": "host_prepare_ms",
    "host_to_device": "host_to_device_ms",
    "compile": "host_compile_ms",
    "host": "host_compute_ms",
    "unknown": "unknown_time_ms",
}
_ON_DEVICE = ("device_compute", "device_to_host", "device_to_device", "collectives")


@dataclass(frozen=True)
class Tables:
    """What TensorFlow computed of one run. `gpus` is None where it does not say; shares are 0..1."""

    hardware: str
    steps: tuple[Step, ...]
    gpus: int | None = None
    compute_16bit: float | None = None


def read_tables(files: Sequence[Path]) -> Tables | None:
    """Read the tables among `files`, the overview first; None where none of them is a table of steps.

    Raises `UserError` where one is damaged.
    """
    for ending, kind in (("overview_page.pb", "OverviewPage"), ("input_pipeline.pb", "InputPipeline")):
        for file in files:
            if file.name.endswith(ending):
                return _table(_parse(file, kind))
    return None


def _table(table: Any) -> Tables:
    analysis = getattr(table, "input_analysis", table)
    hardware = analysis.hardware_type.decode("utf-8", "replace")
    steps = tuple(_step(message("StepDetails").FromString(any_.value)) for any_ in analysis.step_details)
    if analysis is table:
        return Tables(hardware, steps)
    environment = table.run_environment
    has_16bit = (
        table.analysis.HasField("device_compute_16bit_percent") or table.analysis.device_compute_32bit_percent
    )
    return Tables(
        hardware or environment.device_type.decode("utf-8", "replace"),
        steps,
        environment.device_core_count or None,
        table.analysis.device_compute_16bit_percent / 100 if has_16bit else None,
    )


def _step(details: Any) -> Step:
    buckets = {bucket: getattr(details, field) for bucket, field in _FIELDS.items()}
    return Step(details.step_time_ms, sum(buckets[bucket] for bucket in _ON_DEVICE), None, buckets)


def _parse(file: Path, kind: str) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return message(kind).FromString(file.read_bytes())
    except OSError as problem:
        raise UserError(f"{file}: cannot be read: {problem.strerror}") from None
    except DecodeError:
        raise UserError(f"{file}: not a readable profiler table (truncated or damaged); record it again") from None
