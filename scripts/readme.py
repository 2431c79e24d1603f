"""Write the parts of README.md that the program itself can tell: help texts and the table of rules.

    python scripts/readme.py

Such a part stands between ``<!-- begin: NAME -->`` and ``<!-- end -->``. `tests/test_readme.py` compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from tflint_gpu.checks.pages import all_pages
from tflint_gpu.cli import cli

README = Path(__file__).resolve().parents[1] / "README.md"
PART = re.compile(r"(<!-- begin: ([^\n]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def help_text(*command: str) -> str:
    """Return what ``tflint-gpu COMMAND --help`` prints on a terminal of 100 columns, as a block of Markdown."""
    shown = CliRunner().invoke(cli, [*command, "--help"], prog_name="tflint-gpu", terminal_width=100)
    return f"```text\n$ {' '.join(('tflint-gpu', *command, '--help'))}\n{shown.output}```\n"


def rules() -> str:
    """Return the table of rules, each with a link to its page."""
    rows = ["| code | rule | severity | fix | what it reports |", "|---|---|---|---|---|"]
    for page in all_pages():
        link = f"[{page.name}](rules/{page.factor}/{page.path.name})"
        rows.append(f"| {page.code} | {link} | {page.severity} | {page.fix} | {page.summary} |")
    return "\n".join(rows) + "\n"


#: Every generated part by its name.
PARTS: dict[str, Callable[[], str]] = {
    "tflint-gpu --help": help_text,
    "tflint-gpu check --help": lambda: help_text("check"),
    "tflint-gpu trace --help": lambda: help_text("trace"),
    "rules": rules,
}


def filled(text: str) -> str:
    """Return `text` with every part that is known made anew; the others stay as they are."""
    return PART.sub(lambda m: m[1] + (PARTS[m[2]]() if m[2] in PARTS else m[3]) + m[4], text)


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
