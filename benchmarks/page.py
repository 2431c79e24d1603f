"""The page that keeps the figures, README.md: each table stands between ``<!-- begin: NAME -->`` and its end."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).with_name("README.md")


def publish(name: str, table: str) -> None:
    """Put `table` in the place of the one that the page has under `name`."""
    part = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end -->\n)", re.DOTALL)
    text, count = part.subn(lambda found: f"{found[1]}{table}\n{found[2]}", PAGE.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit(f"{PAGE} has no part {name!r}")
    PAGE.write_text(text, encoding="utf-8")
