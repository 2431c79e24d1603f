"""Fixing one cell of a notebook: the JSON around it keeps every byte."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.fixes.conftest import PARALLEL, PREFETCH, finding_at, place_of
from tflint_gpu.findings import Finding
from tflint_gpu.fixes import apply_fixes, edits_of
from tflint_gpu.fixes.document import open_document
from tflint_gpu.fixes.notebook import cell_text, replace_cell, scan
from tflint_gpu.fixes.places import DeclinedError

IMPORT = ["!pip install -q tensorflow\n", "import tensorflow as tf"]
CHAIN = ["%matplotlib inline\n", "ds = (\n", "    ds\n", "    .batch(2)  # größer?\n", ")"]


def notebook(*sources: object, indent: int | None = 1, ascii_only: bool = False) -> str:
    """Return a notebook of one Markdown cell and a code cell for each of `sources`."""
    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["# \u00fc"]}] + [
        {"cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": [], "source": source}
        for source in sources
    ]
    whole = {"cells": cells, "metadata": {"x": [1.50, 1e3, -0.0]}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=indent, ensure_ascii=ascii_only) + "\n"


def in_cell(source: str, call: str, cell: int, **change: str) -> Finding:
    place = replace(place_of(source, call), path="a.ipynb", cell=cell)
    return finding_at(place, **change)


def fixed(text: str, finding: Finding) -> str:
    edits, reason = edits_of(finding, lambda _: text.encode(), (2, 15))
    assert not reason
    return open_document("a.ipynb", text.encode()).apply(edits).decode()


@pytest.mark.parametrize("indent", [1, 4, None])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_lines_are_inserted_as_the_file_is_laid_out(indent: int | None, ascii_only: bool) -> None:
    before = notebook(IMPORT, CHAIN, indent=indent, ascii_only=ascii_only)
    after = fixed(before, in_cell("".join(CHAIN), "ds\n    .batch(2)", 3, **PREFETCH))
    expected = [*CHAIN[:4], "    .prefetch(tf.data.AUTOTUNE)\n", CHAIN[4]]
    assert after == notebook(IMPORT, expected, indent=indent, ascii_only=ascii_only)


def test_the_last_line_has_no_line_end() -> None:
    before = notebook(IMPORT, ["ds = ds.map(f)"])
    after = fixed(before, in_cell("ds = ds.map(f)", "ds.map(f)", 3, **PARALLEL))
    assert after == notebook(IMPORT, ["ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"])


def test_a_cell_keeps_its_line_ends() -> None:
    cell = ["ds = (\r\n", "    ds\r\n", "    .batch(2)\r\n", ")"]
    after = fixed(notebook(IMPORT, cell), in_cell("".join(cell), "ds\n    .batch(2)", 3, **PREFETCH))
    assert after == notebook(IMPORT, [*cell[:3], "    .prefetch(tf.data.AUTOTUNE)\r\n", ")"])


def test_a_source_that_is_one_string_stays_one() -> None:
    source = "import tensorflow as tf\nds = ds.map(f)"
    after = fixed(notebook(source), in_cell(source, "ds.map(f)", 2, **PARALLEL))
    assert after == notebook(source[:-1] + ", num_parallel_calls=tf.data.AUTOTUNE)")


def test_a_statement_behind_a_magic_keeps_its_place() -> None:
    source = "%time ds = ds.map(f)"
    after = fixed(notebook(IMPORT, [source]), in_cell(source, "ds.map(f)", 3, **PARALLEL))
    assert after == notebook(IMPORT, ["%time ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"])


def test_a_file_written_by_a_cell() -> None:
    source = ["%%writefile data.py\n", "import tensorflow as tf\n", "ds = ds.map(f)\n"]
    after = fixed(notebook(source), in_cell("".join(source), "ds.map(f)", 2, **PARALLEL))
    assert after == notebook([*source[:2], "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\n"])


@pytest.mark.parametrize(
    ("above", "imports"),
    [
        (
            ["%matplotlib inline\n", "import os"],
            ["%matplotlib inline\n", "import os\n", "import tensorflow as tf"],
        ),
        (["%matplotlib inline\n", "x = 1"], None),
    ],
    ids=["beside the imports, at the end of their cell", "in front of the statement"],
)
def test_an_import_is_written_where_imports_are(above: list[str], imports: list[str] | None) -> None:
    source = "%time ds = ds.map(f)"
    after = fixed(notebook(above, ["!ls\n", source]), in_cell(f"!ls\n{source}", "ds.map(f)", 3, **PARALLEL))
    made = "%time ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"
    if imports is not None:
        assert after == notebook(imports, ["!ls\n", made])
    else:
        assert after == notebook(above, ["!ls\n", "import tensorflow as tf\n", made])


def test_several_cells_in_one_round() -> None:
    cells = ["ds = ds.map(f)", "ds = ds.batch(2)"]
    before = notebook(IMPORT, [cells[0]], [cells[1]])

    def lint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        now = contents.get("a.ipynb", before.encode()).decode()
        both = [
            ("num_parallel_calls", in_cell(cells[0], "ds.map(f)", 3, **PARALLEL)),
            ("prefetch", in_cell(cells[1], "ds.batch(2)", 4, **PREFETCH)),
        ]
        return [finding for word, finding in both if word not in now]

    report = apply_fixes(lint({}), {"a.ipynb": before.encode()}.get, lint, tensorflow=(2, 15))
    assert report.changed[0].after.decode() == notebook(
        IMPORT,
        ["ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"],
        ["ds = ds.batch(2).prefetch(tf.data.AUTOTUNE)"],
    )


def test_an_unusual_escape_is_declined() -> None:
    text = notebook(["a = '/'\n", "b"]).replace("'/'", "'\\/'")
    with pytest.raises(DeclinedError, match="escapes characters in an unusual way"):
        replace_cell(text, 2, "a = ':'\nb")


@pytest.mark.parametrize("text", ["", "[", '{"cells": [}', "nul", '{"a" "b"}', '{"cells": 3}'])
def test_what_is_no_notebook_is_declined(text: str) -> None:
    with pytest.raises(DeclinedError, match="notebook"):
        cell_text(text, 1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (["a\n", "b\n", ""], "a\nc\n", ["a\n", "c\n", ""]),
        (["a\nb\n", "c\n", "d"], "a\nb\nx\nd", ["a\nb\n", "x\n", "d"]),
        (["", "a\n", "b"], "a\nb.c", ["", "a\n", "b.c"]),
        (["a\n", "", "b"], "a\nc\nb", ["a\n", "", "c\n", "b"]),
        (["a"], "", [""]),
    ],
    ids=["empty part at the end", "two lines in one part", "empty part in front", "in the middle", "all goes"],
)
def test_sources_that_are_parted_unusually_keep_their_parts(old: list[str], new: str, expected: list[str]) -> None:
    assert replace_cell(notebook(IMPORT, old), 3, new) == notebook(IMPORT, expected)


def test_any_change_of_lines_leaves_the_rest() -> None:
    chance = random.Random(7)
    lines = ["a\n", "b\n", "ü\n", "\n", '"\\']
    for _ in range(300):
        old, new = ([chance.choice(lines) for _ in range(chance.randrange(1, 6))] for _ in range(2))
        # As Jupyter writes them: only the last line may lack its end.
        old, new = ([line.rstrip("\n") + "\n" for line in part] for part in (old, new))
        old[-1], new[-1] = old[-1].rstrip("\n") or "x", new[-1].rstrip("\n") or "x"
        text = notebook(IMPORT, old, IMPORT)
        assert replace_cell(text, 3, "".join(new)) == notebook(IMPORT, new, IMPORT)


def test_a_scan_finds_every_value_where_it_stands() -> None:
    text = notebook(IMPORT, CHAIN)
    root = scan(text)
    assert (root.start, root.end) == (0, len(text) - 1)
    assert isinstance(root.value, dict)
    for key, node in root.value.items():
        assert json.loads(text[node.start : node.end]) == json.loads(text)[key]
