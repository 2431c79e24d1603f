"""The lines of requirement, lock and project files that name TensorFlow, Keras or what they run on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tflint_gpu.findings import Location
from tflint_gpu.program.views import Requirement

_NAMES = (
    "tensorflow(?:-cpu|-gpu|-intel|-macos|-metal|-rocm)?|tf-nightly(?:-cpu|-gpu)?|"
    "keras|tf[-_]keras|horovod|jax|torch"
)
#: ``tensorflow[and-cuda]>=2.14; python_version…`` as pip, conda and quoted lists write it.
_LINE = re.compile(
    rf"""^[\s\-\[,]*(?P<quote>["']?)(?P<name>{_NAMES})(?P<extras>\[[^\]]*\])?\s*
    (?P<spec>(?:[=<>!~]=?=?\s*[\w.*+]+\s*,?\s*)*)(?P<rest>\s*(?:;[^\#]*?)?)(?P=quote)\s*[\],)]*\s*(?:\#.*)?$""",
    re.VERBOSE | re.IGNORECASE,
)
#: ``tensorflow = "^2.10"`` as Poetry and Pipfiles write it.
_TABLE = re.compile(
    rf"""^\s*"?(?P<name>{_NAMES})"?\s*=\s*(?:"(?P<spec>[^"]*)"|\{{.*?version\s*=\s*"(?P<inner>[^"]*)".*\}})""",
    re.VERBOSE | re.IGNORECASE,
)
#: Requirements inside a line, as ``install_requires=["tensorflow>=2.4", …]`` writes them.
_QUOTED = re.compile(
    rf"""["'](?P<name>{_NAMES})(?:\[[^\]]*\])?\s*(?P<spec>(?:[=<>!~]=?=?\s*[\w.*]+\s*,?\s*)*)["';]""", re.I
)
_LOCKED = re.compile(rf"""^name\s*=\s*"(?P<name>{_NAMES})"$""", re.IGNORECASE)
_LOCK_VERSION = re.compile(r"""^version\s*=\s*"(?P<version>[\w.]+)"$""")


def read_requirements(file: Path) -> list[Requirement]:
    """Return the requirements of interest that `file` states; none where it cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    path = Path(os.path.relpath(file)).as_posix()
    found = (
        _locked(path, lines)
        if file.name.endswith(".lock")
        else _stated(path, lines, conda=file.suffix in (".yml", ".yaml"))
    )
    return list(found)


def _stated(path: str, lines: list[str], *, conda: bool) -> Iterator[Requirement]:
    for number, line in enumerate(lines, 1):
        matches = [m for m in (_LINE.match(line), _TABLE.match(line)) if m] or list(_QUOTED.finditer(line))
        for match in matches[:1] if matches and matches[0].re is not _QUOTED else matches:
            groups = match.groupdict()
            spec = (groups.get("spec") or groups.get("inner") or "").strip()
            marker = (groups.get("rest") or "").strip().lstrip(";").strip()
            name = match["name"].lower().replace("_", "-")
            location = Location(path, number, match.start("name") + 1, number, len(line.rstrip()) + 1)
            yield Requirement(name, _specifier(spec, conda=conda), location, marker)


def _specifier(text: str, *, conda: bool) -> str:
    """Return `text` in pip's notation: Poetry's carets and conda's single equals are spelled out."""
    text = text.replace(" ", "").rstrip(",")
    if text in ("", "*"):
        return ""
    if text.startswith("^"):
        return f">={text[1:]},<{int(text[1:].split('.')[0]) + 1}"
    if text.startswith("~") and not text.startswith("~="):
        return f"~={text[1:]}.0" if text.count(".") == 1 else f"~={text[1:]}"
    if text[0].isdigit():
        return f"=={text}" if text.count(".") > 1 else f"=={text}.*"
    if conda and text.startswith("=") and not text.startswith("=="):
        return f"=={text[1:]}.*" if text.count(".") < 2 else f"=={text[1:]}"
    return text


def _locked(path: str, lines: list[str]) -> Iterator[Requirement]:
    for number, line in enumerate(lines, 1):
        name = _LOCKED.match(line)
        version = _LOCK_VERSION.match(lines[number]) if name and number < len(lines) else None
        if name and version:
            yield Requirement(name["name"].lower(), f"=={version['version']}", Location(path, number))
