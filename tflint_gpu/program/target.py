"""The versions a program is meant for: several rules are right only for a range of them."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflint_gpu.source.requirements import find_requirement_files

if TYPE_CHECKING:
    from tflint_gpu.config import Settings
    from tflint_gpu.program.requirements import Requirement
    from tflint_gpu.source.texts import Source

#: The newest TensorFlow whose behaviour the rules were checked against, and the Keras that comes with it.
NEWEST = ((2, 21), (3, 15))

#: The first TensorFlow whose ``tf.keras`` is Keras 3.
KERAS_3 = (2, 16)

#: The packages that are TensorFlow, by any maker.
_TENSORFLOW = re.compile(r"tensorflow(-(cpu|gpu|intel|macos|rocm|cpu-aws))?|tf-nightly(-(cpu|gpu))?")

#: Where a program chooses Keras' backend: by the variable, or by a call.
_BACKEND = re.compile(
    r"""^[^#\n]*(?:KERAS_BACKEND["']\s*(?:\]\s*=|,)|keras\.(?:config|utils)\.set_backend\()\s*["'](\w+)""",
    re.MULTILINE,
)
_LEGACY = re.compile(r"""^[^#\n]*TF_USE_LEGACY_KERAS["']\s*(?:\]\s*=|,)\s*["']?(?:1|True)""", re.MULTILINE)
_TF_KERAS = re.compile(r"^\s*(?:import|from)\s+tf_keras\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """TensorFlow and Keras versions as (major, minor), the Keras backend, and where they were learnt.

    `source` is ``setting``, a file's path, ``traced run``, ``installed`` or ``newest known``.
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
    def stated(self) -> bool:
        """Whether the project itself says which version it is meant for; else it is what happens to be there."""
        return self.source not in ("traced run", "installed", "newest known")

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

    In order: the setting, the project's own requirement and lock files, what a traced run used, the installed
    TensorFlow (its metadata, not an import), else the newest known.
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
    return Target(tensorflow, keras, _backend(settings, texts, keras), source), requirements


def _backend(settings: Settings, texts: Iterable[str], keras: tuple[int, int]) -> str:
    """Return Keras' backend: the setting, what the program says, and for Keras 3 what this machine is set to."""
    if settings.keras_backend:
        return settings.keras_backend
    said = (_says(text, word, _BACKEND) for text in texts for word in ("KERAS_BACKEND", "set_backend"))
    stated = next((match[1] for match in said if match), None)
    return stated or (machine_backend() if keras >= (3, 0) else None) or "tensorflow"


def machine_backend() -> str | None:
    """Return the backend that Keras would take here: ``KERAS_BACKEND``, else what ``keras.json`` says."""
    if named := os.environ.get("KERAS_BACKEND"):
        return named
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")  # noqa: PTH111, PTH118
    try:
        text = Path(home, "keras.json").read_bytes()
        found = json.loads(text).get("backend") if text else None
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


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
    for requirement in _stated(requirements):
        pinned = newest_of(requirement.specifier, [(1, 15), *((2, minor) for minor in range(NEWEST[0][1] + 1))])
        if pinned is not None:
            return pinned, _keras_pinned(requirements) or _keras_of(pinned), requirement.location.path
    if settings.traced:
        ran, keras = (_major_minor(text) for text in settings.traced)
        if ran is not None:
            return ran, keras or _keras_of(ran), "traced run"
    installed = _installed("tensorflow")
    if installed is not None:
        return (
            installed,
            _installed("keras") if installed >= KERAS_3 and _installed("keras") else _keras_of(installed),
            "installed",
        )  # type: ignore[return-value]
    return NEWEST[0], _keras_pinned(requirements) or NEWEST[1], "newest known"


def _stated(requirements: Sequence[Requirement]) -> Iterator[Requirement]:
    """Yield the requirements that say which TensorFlow: of each file those first that hold where GPUs are."""
    naming = [
        requirement
        for requirement in requirements
        if requirement.specifier and _TENSORFLOW.fullmatch(requirement.name)
    ]
    for _, of_file in itertools.groupby(naming, lambda requirement: requirement.location.path):
        yield from sorted(of_file, key=lambda requirement: not _on_linux(requirement.marker))


def _on_linux(marker: str) -> bool:
    """Say whether a requirement's environment marker holds on Linux, where nearly all training is done."""
    if not marker:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}
    try:
        return Marker(marker).evaluate({**linux, "extra": ""})
    except (InvalidMarker, UndefinedEnvironmentName):
        return True


def _major_minor(version: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


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

    others = ("-gpu", "-cpu", "-intel", "-macos", "-rocm", "-cpu-aws") if package == "tensorflow" else ()
    nightly = ("tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu") if package == "tensorflow" else ("keras-nightly",)
    for name in (package, *(f"{package}{other}" for other in others), *nightly):
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        major, minor = version.split(".")[:2]
        return int(major), int(minor)
    return None
