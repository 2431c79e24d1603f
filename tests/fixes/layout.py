"""Laying a program out anew: other line breaks, blanks, comments, tabs and line ends, and the same tree."""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize

#: The share of gaps between tokens that are changed, inside brackets and outside.
INSIDE, OUTSIDE, BEHIND = 0.15, 0.02, 0.3

_QUIET = {tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def laid_out_anew(text: str, chance: random.Random) -> str:
    """Return `text` as somebody else might have laid it out."""
    parts: list[str] = []
    depth, formatted = 0, 0
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    offsets.append(offsets[-1])
    at, last = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (row, column), (end_row, end_column) = token.start, token.end
        start, end = offsets[row - 1] + column, offsets[end_row - 1] + end_column
        gap = text[at:start]
        if not formatted and last and token.type not in _QUIET and not _tight(last, token.string):
            gap = _gap(gap, depth, chance)
        elif not depth and token.type == tokenize.NEWLINE and chance.random() < BEHIND:
            gap += f"  # kept {len(parts)}"
        parts += [gap, text[start:end]]
        name = tokenize.tok_name[token.type]
        formatted += name.endswith("STRING_START") - name.endswith("STRING_END")
        if not formatted and token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        at, last = max(at, end), "" if token.type in _QUIET else token.string
    return "".join(parts)


def _tight(last: str, string: str) -> bool:
    """Say whether nobody parts these two: a name and its bracket, a dot and its name, a module and its dot."""
    called = string in "([" and (last.isidentifier() or last in ")]")
    return called or last == "." or (string == "." and last.isidentifier())


def _gap(gap: str, depth: int, chance: random.Random) -> str:
    if not depth:
        return f"{gap} \\\n    " if chance.random() < OUTSIDE else gap
    if chance.random() >= INSIDE:
        return gap
    indent = " " * chance.randrange(1, 9)
    return chance.choice(
        [f"{gap}\n{indent}", f"{gap}  # why {chance.randrange(99)}\n{indent}", f"{gap}  ", f"{gap}\n\n{indent}"]
    )


def with_tabs(text: str) -> str:
    """Return `text` with a tab for every four blanks that a line begins with."""
    return re.sub(r"^(?: {4})+", lambda blanks: "\t" * (len(blanks[0]) // 4), text, flags=re.MULTILINE)


def comments(text: str) -> list[str]:
    """Return the comments of a text, in the order of the alphabet."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)


def tree(text: str) -> str:
    """Return the tree of a text, places left out."""
    return ast.dump(ast.parse(text))
