"""Reads recorded profiles: XPlane files of TensorFlow and JAX, TensorFlow's own tables, TF 1 timelines."""

from __future__ import annotations

from tflint_gpu.trace.profile.summary import ProfileSummary, read_profile

__all__ = ["ProfileSummary", "read_profile"]
