"""IPython's additions to Python: what a cell is, and its magics masked so that every line stays where it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Cell magics whose body is Python that runs in the notebook itself; the body of any other is foreign.
_PYTHON_MAGICS = frozenset(
    {
        *("capture", "debug", "heat", "local", "lprun", "memit", "mprun", "notify", "prun", "px"),
        *("scalene", "snakeviz", "time", "timeit", "wandb"),
    }
)
_FILE_MAGICS = frozenset({"writefile", "file"})
#: ``%env NAME=value`` sets a variable as ``os.environ`` would.
_ENVIRONMENT = re.compile(r"%(?:env|set_env)\s+(\w+)(?:\s*=\s*|\s+)(\S.*)$")
#: Line magics that run the Python statement behind them.
_RUNS_STATEMENT = re.compile(r"%(?:time|timeit|prun|memit)\b(?:\s+-\w+(?:\s+\d+)?)*\s+(?=[^\s-])")
_COMMANDS = "(?:pip3?|conda|mamba|cd|ls|cat|cp|mv|mkdir|rm|rmdir|man|less|more)"
_SUSPECT = re.compile(rf"^\s*[%!?]|=\s*[%!]|\?\s*$|^\s*{_COMMANDS}\s", re.MULTILINE)
_SHELL = re.compile(_COMMANDS + r"\s+[-\w./~*{\"'$]")
_HELP = re.compile(r"[\w.*%\[\]]+\?{1,2}\s*(?:#.*)?$")
_ASSIGNED = re.compile(r"([\w.,\s*()\[\]\"']+?=\s*)(?=[%!])")
_COMPOUND = re.compile(r"(?:for|while|if|with|def|class|try|async)\b")
_TOKEN = re.compile(r"#|'''|\"\"\"|'|\"|[\[({]|[\])}]")


@dataclass(frozen=True, slots=True)
class CellText:
    """What a code cell holds: `kind` is ``python``, ``file`` (its text is the file `name`) or ``foreign``."""

    kind: str
    text: str
    name: str = ""


def read_cell(text: str) -> CellText:
    """Tell what the code cell `text` is, and return it with as many lines as before, magics masked."""
    head, _, body = text.lstrip("\n").partition("\n")
    if not head.startswith("%%"):
        return CellText("python", mask(text))
    above = "\n" * (len(text) - len(text.lstrip("\n")))
    words = head[2:].split()
    magic = words[0] if words else ""
    if magic in _FILE_MAGICS and words[-1].endswith(".py"):
        return CellText("file", f"{above}\n{body}", words[-1])
    if magic in _PYTHON_MAGICS:
        return CellText("python", f"{above}\n{mask(body)}")
    return CellText("foreign", "")


def mask(text: str) -> str:
    """Return `text` with shell lines, magics and help requests replaced by statements that do nothing."""
    if not _SUSPECT.search(text) or _is_python(text):
        return text
    masked = []
    depth, quote, carried, in_magic = 0, "", False, False
    for line in text.split("\n"):
        if in_magic:
            in_magic = line.rstrip().endswith("\\")
            masked.append("")
            continue
        plain = None if depth or quote or carried else _mask_line(line)
        if plain is not None and not plain.strip().startswith("0;"):
            in_magic = line.rstrip().endswith("\\")
            masked.append(plain)
            continue
        line = line if plain is None else plain
        depth, quote = _scan(line, depth, quote)
        carried = not quote and line.endswith("\\")
        masked.append(line)
    return "\n".join(masked)


def _is_python(text: str) -> bool:
    import ast
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _mask_line(line: str) -> str | None:
    """Return the replacement of a line that begins a statement, None where it is plain Python."""
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    runs = _RUNS_STATEMENT.match(code)
    if runs and not _COMPOUND.match(code, runs.end()):
        # The statement keeps its columns: `%time ` becomes `0;    `.
        return f"{indent}0;{' ' * (runs.end() - 2)}{code[runs.end() :]}"
    set_variable = _ENVIRONMENT.match(code)
    if set_variable:
        return f'{indent}__import__("os").environ[{set_variable[1]!r}] = {set_variable[2].strip()!r}'
    if code.startswith(("%", "!", "?")) or _HELP.match(code) or _SHELL.match(code):
        return f"{indent}pass"
    assigned = _ASSIGNED.match(code)
    if assigned is None:
        return None
    runs = _RUNS_STATEMENT.match(code, assigned.end())
    if runs:
        return f"{indent}{assigned[1]}{' ' * (runs.end() - runs.start())}{code[runs.end() :]}"
    return f"{indent}{assigned[1]}get_ipython()"


def _scan(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Follow brackets and strings through `line`; return the open ones at its end."""
    at = 0
    while at < len(line):
        if quote:
            at, quote = _close(line, at, quote)
            continue
        token = _TOKEN.search(line, at)
        if token is None or token[0] == "#":
            break
        at = token.end()
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth = max(depth - 1, 0)
        else:
            quote = token[0]
    # A string in single quotes reaches the next line only behind a backslash.
    return depth, quote if len(quote) == 3 or line.endswith("\\") else ""


def _close(line: str, at: int, quote: str) -> tuple[int, str]:
    while at < len(line):
        if line[at] == "\\":
            at += 2
        elif line.startswith(quote, at):
            return at + len(quote), ""
        else:
            at += 1
    return len(line), quote
