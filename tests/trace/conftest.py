"""Runs of real scripts, each made once and shared by all tests that look at it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tflint_gpu.trace.evidence import Evidence
from tflint_gpu.trace.script import find_script
from tflint_gpu.trace.session import TraceJob, trace_script

SCRIPTS = Path(__file__).parent / "scripts"

Tracing = Callable[..., tuple[Evidence, Path]]


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Tracing:
    """Trace one of the scripts beside this file in a folder of its own; returns the evidence and that folder."""
    pytest.importorskip("tensorflow")
    made: dict[tuple[object, ...], tuple[Evidence, Path]] = {}

    def run(
        name: str, *arguments: str, changes: tuple[str, ...] = (), budget: float = 0.0
    ) -> tuple[Evidence, Path]:
        key = (name, arguments, changes)
        if key not in made:
            folder = tmp_path_factory.mktemp("traced")
            shutil.copy(SCRIPTS / name, folder)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                job = TraceJob(
                    find_script(name),
                    arguments,
                    python=sys.executable,
                    changes=changes,
                    budget=budget,
                    profile_folder=folder / "kept" / "profile",
                )
                made[key] = trace_script(job, lambda _text: None), folder
        return made[key]

    return run
