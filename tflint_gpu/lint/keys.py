"""What findings depend on, hashed: where two keys are equal, so are the findings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflint_gpu import __version__
from tflint_gpu.lint.stamps import stamps
from tflint_gpu.source.requirements import RequirementFiles

if TYPE_CHECKING:
    from tflint_gpu.config import Settings
    from tflint_gpu.source.files import SourceFile

#: What of an installed package tells its version without an import: the name of its metadata folder.
_METADATA = (".dist-info", ".egg-info")
_PACKAGES = ("tensorflow", "keras")


def digest(content: bytes) -> str:
    """Return the hash that files are compared by."""
    return blake2b(content, digest_size=16).hexdigest()


def version() -> str:
    """Return a folder name that changes with this program, the text of its rules and Python."""
    hashed = blake2b(digest_size=8)
    package = Path(__file__).parents[1]
    # In a checkout the pages of the rules lie beside the package, once it is installed inside it.
    installed = (package / "rules").is_dir()
    for top in (package,) if installed else (package, package.parent / "rules"):
        for folder, below, names in os.walk(top):
            below[:] = sorted(name for name in below if name != "__pycache__")
            for name in sorted(names):
                content = Path(folder, name).read_bytes()
                hashed.update(f"{name}\0{len(content)}\0".encode())
                hashed.update(content)
    python = f"{sys.implementation.cache_tag}.{sys.version_info.micro}"
    return f"{__version__}-{python}-{hashed.hexdigest()}"


def conditions(settings: Settings) -> str:
    """Return everything beside files that findings depend on, as one text."""
    from tflint_gpu.program.target import machine_backend

    installed = list(_installed())
    return json.dumps(
        [
            settings.select,
            settings.ignore,
            settings.extend_select,
            {name: int(level) for name, level in settings.severity.items()},
            settings.rules,
            settings.tensorflow,
            settings.keras_backend,
            machine_backend(),
            sorted(name for _, name in installed if name.startswith(_PACKAGES)),
            stamps(f"{place}/{name}" for place, name in installed),
        ],
        sort_keys=True,
        default=str,
    )


def _installed() -> Iterable[tuple[str, str]]:
    """Yield where and what the metadata folders of packages are: `importlib.metadata` takes ten times as long."""
    for place in dict.fromkeys(sys.path):
        try:
            names = [entry.name for entry in os.scandir(place or ".")]
        except OSError:
            continue
        yield from ((place or ".", name) for name in names if name.endswith(_METADATA))


class Keys:
    """The keys of one run: of all its files, and of groups of them."""

    def __init__(self, settings: Settings, digests: Mapping[str, str]) -> None:
        """`digests` has that of each file by its path."""
        self._conditions = conditions(settings)
        self._digests = digests
        self._requirements = RequirementFiles()
        self._contents: dict[Path, str | None] = {}

    def of_run(self, files: Iterable[SourceFile]) -> str:
        """Return the key of `files`: what each is called, how it was named, what is in it."""
        listed = [(file.path, file.kind, file.explicit, self._digests[file.path]) for file in files]
        return self._key(listed, (path for path, *_ in listed))

    def of_group(self, members: Iterable[tuple[str, str]]) -> str:
        """Return the key of a group of sources: (the path that imports see, the file it is in) of each."""
        listed = [(name, path, self._digests[path]) for name, path in members]
        return self._key(listed, (name for name, *_ in listed))

    def _key(self, listed: list[Any], paths: Iterable[str]) -> str:
        whole = [self._conditions, listed, self._required(paths)]
        return blake2b(json.dumps(whole).encode(), digest_size=20).hexdigest()

    def _required(self, paths: Iterable[str]) -> list[tuple[str, str | None]]:
        """Return the path and digest of each requirement file that holds for the folders of `paths`."""
        folders = sorted({path.rpartition("/")[0] for path in paths})
        files = self._requirements.of(*map(Path, folders))
        return [(os.path.relpath(file), self._content(file)) for file in files]

    def _content(self, file: Path) -> str | None:
        if file not in self._contents:
            try:
                self._contents[file] = digest(file.read_bytes())
            except OSError:
                self._contents[file] = None
        return self._contents[file]
