"""The lines of requirement, lock and project files that name TensorFlow, Keras or what they run on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tflint_gpu.findings import Location

_NAMES = (
    "tensorflow(?:[-_](?:cpu|gpu|intel|macos|metal|rocm|cpu[-_]aws))?|tf[-_]nightly(?:[-_](?:cpu|gpu))?|"
    "keras|tf[-_]keras|horovod|jax|torch"
)
#: Versions as pip compares them, one behind the other.
_SPECIFIER = r"(?:[=<>!~]=?=?\s*[\w.*+]+\s*,?\s*)*"

#: ``tensorflow[and-cuda]>=2.14; python_version…`` as pip, conda and quoted lists write it, hashes behind.
_LINE = re.compile(
    rf"""^[\s\-\[,]*(?P<quote>["']?)(?P<name>{_NAMES})(?P<extras>\[[^\]]*\])?\s*
    \(?(?P<spec>{_SPECIFIER})\)?(?P<rest>\s*(?:;[^\#]*?)?)(?P=quote)\s*
    (?:--hash\S+\s*)*\\?[\],)]*\s*(?:\#.*)?$""",
    re.VERBOSE | re.IGNORECASE,
)
#: ``tensorflow @ https://…/tensorflow-2.9.1-cp39-….whl``
_URL = re.compile(
    rf"""^[\s\["']*(?P<name>{_NAMES})\s*@\s*\S*?/[\w]+-(?P<version>\d+\.\d+[\w.]*)(?=[-+])""", re.IGNORECASE
)
#: ``tensorflow = "^2.10"`` as Poetry and Pipfiles write it.
_TABLE = re.compile(
    rf"""^\s*"?(?P<name>{_NAMES})"?\s*=\s*(?:"(?P<spec>[^"]*)"|\{{.*?version\s*=\s*"(?P<inner>[^"]*)".*\}})""",
    re.VERBOSE | re.IGNORECASE,
)
#: ``gpu = tensorflow-gpu==2.5`` as setup.cfg writes what is optional.
_EXTRA = re.compile(rf"^[\w-]+\s*=\s*(?P<name>{_NAMES})(?:\[[^\]]*\])?\s*(?P<spec>{_SPECIFIER})$", re.IGNORECASE)
#: Requirements inside a line, as ``install_requires=["tensorflow>=2.4", …]`` writes them.
_QUOTED = re.compile(rf"""["'](?P<name>{_NAMES})(?:\[[^\]]*\])?\s*(?P<spec>{_SPECIFIER})["';]""", re.IGNORECASE)
#: ``- conda-forge::tensorflow-gpu=2.4.1=h8236f22_0`` as conda writes it.
_CONDA = re.compile(
    rf"""^\s*-\s*["']?(?:[\w./-]+::)?(?P<name>{_NAMES})(?:\[[^\]]*\])?
    (?P<spec>\s*[=<>!~][^\#"']*|\s+\d[\w.*]*)?["']?\s*(?:\#.*)?$""",
    re.VERBOSE | re.IGNORECASE,
)
#: The same inside ``[python=3.8, tensorflow=2.4]``.
_CONDA_FLOW = re.compile(
    rf"""[\[,]\s*["']?(?:[\w./-]+::)?(?P<name>{_NAMES})(?P<spec>[=<>!~][^\],"']*)?["']?\s*(?=[\],])""",
    re.IGNORECASE,
)

#: How locks write a package: its name on one line, its version on one of the next.
_LOCKED = re.compile(
    rf"""^\s*(?:-\s*)?(?:name\s*[=:]\s*["']?|["'])(?P<name>{_NAMES})["']?(?:\s*:\s*\{{)?\s*$""", re.I
)
_LOCK_VERSION = re.compile(r"""^\s*["']?version["']?\s*[=:]\s*["']?=*(?P<version>\d[\w.]*)["']?,?\s*$""")
#: How far behind the name of a package its version may stand: hashes are in between.
_LOCK_LINES = 400
#: Headers such as ``[tool.poetry.dependencies.tensorflow]``.
_HEADER = re.compile(rf"""^\s*\[[\w."-]+\.["']?(?P<name>{_NAMES})["']?\]\s*$""", re.IGNORECASE)

#: A builder's suffix, or the fourth number of ROCm's builds: of which release it is counts.
_BUILD = re.compile(r"(\d+\.\d+\.\d+)(?:[.-]?(?:dev|rc|a|b|post)?\d+)+")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A line of a requirement, lock or project file that names a package of interest."""

    name: str
    specifier: str
    location: Location
    marker: str = ""


_Reader: TypeAlias = Callable[[str, list[str]], Iterator[Requirement]]


def read_requirements(file: Path) -> list[Requirement]:
    """Return the requirements of interest that `file` states; none where it cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    path = Path(os.path.relpath(file)).as_posix()
    return list(_reader(file)(path, lines))


def _reader(file: Path) -> _Reader:
    if file.name.endswith(".lock") or file.name == "pylock.toml":
        return _locked
    return _conda if file.suffix in (".yml", ".yaml") else _stated


def _stated(path: str, lines: list[str]) -> Iterator[Requirement]:
    for number, line in enumerate(lines, 1):
        whole = _LINE.match(line) or _URL.match(line) or _TABLE.match(line) or _EXTRA.match(line)
        for match in [whole] if whole else _QUOTED.finditer(line):
            groups = match.groupdict()
            exact = f"=={groups['version']}" if groups.get("version") else ""
            spec = exact or groups.get("spec") or groups.get("inner") or ""
            marker = (groups.get("rest") or "").strip().lstrip(";").strip()
            yield _requirement(path, number, line, match, _specifier(spec), marker)
        if header := _HEADER.match(line):
            version = _version_behind(lines, number, end="[")
            yield _requirement(path, number, line, header, _specifier(version or ""))


def _conda(path: str, lines: list[str]) -> Iterator[Requirement]:
    locked = list(_locked(path, lines))
    for number, line in enumerate(lines, 1):
        whole = _CONDA.match(line)
        for match in [whole] if whole else _CONDA_FLOW.finditer(line):
            yield _requirement(path, number, line, match, _conda_specifier(match["spec"] or ""))
    yield from locked


def _locked(path: str, lines: list[str]) -> Iterator[Requirement]:
    for number, line in enumerate(lines, 1):
        name = _LOCKED.match(line)
        version = _version_behind(lines, number) if name else None
        if name and version:
            yield _requirement(path, number, line, name, _specifier(f"=={version.lstrip('=')}"))


def _version_behind(lines: list[str], number: int, end: str = "") -> str | None:
    """Return the version that one of the lines behind line `number` states, before the next package begins."""
    for line in lines[number : number + _LOCK_LINES]:
        if stated := re.match(r"""\s*version\s*=\s*"([^"]+)"\s*$""", line) or _LOCK_VERSION.match(line):
            return stated[1]
        if _LOCKED.match(line) or line.startswith(("[[", "- name:")) or (end and line.startswith(end)):
            return None
    return None


def _requirement(
    path: str, number: int, line: str, match: re.Match[str], specifier: str, marker: str = ""
) -> Requirement:
    name = match["name"].lower().replace("_", "-")
    location = Location(path, number, match.start("name") + 1, number, len(line.rstrip()) + 1)
    return Requirement(name, specifier, location, marker)


def _conda_specifier(text: str) -> str:
    """Return conda's ``=2.4.1=build``, ``2.9.*`` or ``>=2.6,<2.8`` in pip's notation."""
    text = re.sub(r"^(=?=?[\d.*]+)=\S+$", r"\1", text.strip())
    if re.match(r"=(?!=)", text):
        return f"=={text[1:]}" if text.count(".") > 1 or text.endswith("*") else f"=={text[1:]}.*"
    return _specifier(text)


def _specifier(text: str) -> str:
    """Return `text` in pip's notation: Poetry's carets and tildes are spelled out, nightlies are their release."""
    text = _BUILD.sub(r"\1", text.replace(" ", "").rstrip(","))
    return ",".join(_one(part) for part in text.split(",")) if text not in ("", "*") else ""


def _one(text: str) -> str:
    if text.startswith("^"):
        return f">={text[1:]},<{int(text[1:].split('.')[0]) + 1}"
    if text.startswith("~") and not text.startswith("~="):
        return f"~={text[1:]}.0" if text.count(".") == 1 else f"~={text[1:]}"
    if text[:1].isdigit():
        return f"=={text}" if text.count(".") > 1 or text.endswith("*") else f"=={text}.*"
    return text
