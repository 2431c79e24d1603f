"""The versions a program is meant for: several rules are right only for a range of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflint_gpu.source.requirements import find_requirement_files

if TYPE_CHECKING:
    from tflint_gpu.config import Settings
    from tflint_gpu.program.views import Requirement
    from tflint_gpu.source.files import Source

#: The newest TensorFlow whose behaviour the rules were checked against, and the Keras that comes with it.
NEWEST = ((2, 21), (3, 15))

#: The first TensorFlow whose ``tf.keras`` is Keras 3.
KERAS_3 = (2, 16)

_BACKEND = re.compile(r"""^[^#\n]*KERAS_BACKEND["']\s*(?:\]\s*=|,)\s*["'](\w+)""", re.MULTILINE)
_LEGACY = re.compile(r"""^[^#\n]*TF_USE_LEGACY_KERAS["']\s*(?:\]\s*=|,)\s*["']?(?:1|True)""", re.MULTILINE)
_TF_KERAS = re.compile(r"^\s*(?:import|from)\s+tf_keras\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """TensorFlow and Keras versions as (major, minor), the Keras backend, and where they were learnt.

    `source` is ``setting``, a file's path, ``installed`` or ``newest known``.
    """

    tensorflow: tuple[int, int] = NEWEST[0]
    keras: tuple[int, int] = NEWEST[1]
    backend: str = "tensorflow"
    source: str = "newest known"

    def __str__(self) -> str:
        """Return the version and its origin, as reports name them: ``2.15 (requirements.txt)``."""
        return f"{self.tensorflow[0]}.{self.tensorflow[1]} ({self.source})"

    @property
    def other_kernels(self) -> str:
        """The version whose table of kernels stands in for that of this one, "" where it has one of its own."""
        if self.tensorflow == NEWEST[0]:
            return ""
        from tflint_gpu.program.kernels import release_of, table_version

        table = table_version(self.tensorflow)
        return "" if release_of(table) == self.tensorflow else table

    @property
    def legacy_keras(self) -> bool:
        """Whether ``keras`` means Keras 2: TF ≤ 2.15, ``TF_USE_LEGACY_KERAS`` or the package ``tf_keras``."""
        return self.keras < (3, 0)

    @property
    def injects_prefetch(self) -> bool:
        """Whether tf.data adds a prefetch by itself (TF 2.11, measured by running 2.10.1 and 2.11.1)."""
        return self.tensorflow >= (2, 11)

    @property
    def parallelises_maps(self) -> bool:
        """Whether stateless maps are made parallel by the runtime (seen from TF 2.5.3 on, documented from 2.7)."""
        return self.tensorflow >= (2, 5)

    @property
    def on_tensorflow(self) -> bool:
        """Whether Keras runs on TensorFlow: on JAX or torch the rules on graphs do not apply."""
        return self.backend == "tensorflow"


def find_target(
    paths: Iterable[str], sources: Mapping[str, Source], settings: Settings
) -> tuple[Target, list[Requirement]]:
    """Return what the files at `paths` are meant for, and the requirement lines that say so.

    In order: the setting, the project's own requirement and lock files, the installed TensorFlow (its
    metadata, not an import), else the newest known.
    """
    paths = list(paths)
    texts = [sources[path].text for path in paths]
    requirements = _requirements(paths)
    tensorflow, keras, source = _versions(settings, requirements)
    legacy = any(
        _says(text, "TF_USE_LEGACY_KERAS", _LEGACY) or _says(text, "tf_keras", _TF_KERAS) for text in texts
    )
    if legacy and tensorflow >= KERAS_3:
        keras = (2, tensorflow[1])
    backend = next((match[1] for text in texts if (match := _says(text, "KERAS_BACKEND", _BACKEND))), None)
    return Target(
        tensorflow, keras, backend or os.environ.get("KERAS_BACKEND", "tensorflow"), source
    ), requirements


def _says(text: str, word: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Search `text` for `pattern`, which cannot be found where `word` is not: few files hold it."""
    return pattern.search(text) if word in text else None


def _requirements(paths: Sequence[str]) -> list[Requirement]:
    """Return the requirement lines that hold for the folders of `paths`, each file's once."""
    from tflint_gpu.program.requirements import read_requirements

    folders = sorted({path.rpartition("/")[0] for path in paths})
    files = find_requirement_files(*map(Path, folders))
    return [requirement for file in files for requirement in read_requirements(file)]


def _versions(
    settings: Settings, requirements: Sequence[Requirement]
) -> tuple[tuple[int, int], tuple[int, int], str]:
    if settings.tensorflow:
        major, _, minor = settings.tensorflow.partition(".")
        version = (int(major), int(minor.partition(".")[0] or 0))
        return version, _keras_of(version), "setting"
    for requirement in requirements:
        if requirement.name in ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly", "tf-nightly-gpu"):
            pinned = newest_of(
                requirement.specifier, [(1, 15), *((2, minor) for minor in range(NEWEST[0][1] + 1))]
            )
            if pinned is not None and requirement.specifier:
                return pinned, _keras_pinned(requirements) or _keras_of(pinned), requirement.location.path
    installed = _installed("tensorflow")
    if installed is not None:
        return (
            installed,
            _installed("keras") if installed >= KERAS_3 and _installed("keras") else _keras_of(installed),
            "installed",
        )  # type: ignore[return-value]
    return NEWEST[0], _keras_pinned(requirements) or NEWEST[1], "newest known"


def _keras_of(tensorflow: tuple[int, int]) -> tuple[int, int]:
    return NEWEST[1] if tensorflow >= KERAS_3 else (2, tensorflow[1])


def _keras_pinned(requirements: Sequence[Requirement]) -> tuple[int, int] | None:
    for requirement in requirements:
        if requirement.name == "keras" and requirement.specifier:
            known = [(2, minor) for minor in range(3, 16)] + [(3, minor) for minor in range(NEWEST[1][1] + 1)]
            return newest_of(requirement.specifier, known)
    return None


def newest_of(specifier: str, known: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the newest of the `known` versions that `specifier` allows; the newest of all for an empty one."""
    if not specifier:
        return known[-1]
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(specifier, prereleases=True)
    except InvalidSpecifier:
        return None
    for major, minor in reversed(known):
        if any(allowed.contains(f"{major}.{minor}.{patch}") for patch in range(6)):
            return major, minor
    return None


def _installed(package: str) -> tuple[int, int] | None:
    from importlib import metadata

    for name in (package, f"{package}-cpu", f"{package}-intel", f"{package}-macos"):
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        major, minor = version.split(".")[:2]
        return int(major), int(minor)
    return None
