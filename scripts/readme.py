"""Write the parts of README.md that the program itself can tell: help texts and the table of rules.

    python scripts/readme.py           these
    python scripts/readme.py --demo    the report of `make demo` too, which takes a minute and needs TensorFlow

Such a part stands between ``<!-- begin: NAME -->`` and ``<!-- end -->``. `tests/test_readme.py` compares them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tflint_gpu.checks.catalogue import all_pages

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PART = re.compile(r"(<!-- begin: ([^\n]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def help_text(*command: str) -> str:
    """Return what ``tflint-gpu COMMAND --help`` prints on a terminal of 100 columns, as a block of Markdown."""
    # A process of its own: click keeps the help option that a command was first asked with.
    call = "import sys; from tflint_gpu.cli import invoke; sys.exit(invoke(sys.argv[1:]))"
    shown = subprocess.run(
        [sys.executable, "-c", call, *command, "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return f"```text\n$ {' '.join(('tflint-gpu', *command, '--help'))}\n{shown.stdout}```\n"


def rules() -> str:
    """Return the table of rules, each with a link to its page."""
    rows = ["| code | rule | severity | fix | what it reports |", "|---|---|---|---|---|"]
    for page in all_pages():
        link = f"[{page.name}](rules/{page.factor}/{page.path.name})"
        rows.append(f"| {page.code} | {link} | {page.severity} | {page.fix} | {page.summary} |")
    return "\n".join(rows) + "\n"


def demo() -> str:
    """Run what `make demo` runs and return its report as a block of Markdown; raises `SystemExit` if it failed."""
    command = [
        sys.executable,
        "-m",
        "tflint_gpu",
        "trace",
        "--output-format",
        "full",
        "fixtures/slow_input/train.py",
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the demo ended with {done.returncode}")
    return f"```text\n{done.stdout}```\n"


#: Every generated part by its name.
PARTS: dict[str, Callable[[], str]] = {
    "tflint-gpu --help": help_text,
    "tflint-gpu check --help": lambda: help_text("check"),
    "tflint-gpu trace --help": lambda: help_text("trace"),
    "tflint-gpu attach --help": lambda: help_text("attach"),
    "rules": rules,
}


def filled(text: str, parts: dict[str, Callable[[], str]]) -> str:
    """Return `text` with `parts` made anew; the others stay as they are."""
    return PART.sub(lambda m: m[1] + (parts[m[2]]() if m[2] in parts else m[3]) + m[4], text)


if __name__ == "__main__":
    wanted = {**PARTS, "make demo": demo} if "--demo" in sys.argv[1:] else PARTS
    README.write_text(filled(README.read_text(encoding="utf-8"), wanted), encoding="utf-8")
