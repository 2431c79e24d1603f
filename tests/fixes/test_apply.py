"""Applying fixes: proven by a second lint, written whole or not at all, and nothing else touched."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fixes.conftest import PARALLEL, PREFETCH, Project, finding_at, place_of
from tflint_gpu.findings import Change, Finding, Fix, Location, Severity, Verdict
from tflint_gpu.fixes import FixReport, apply_fixes, edits_of
from tflint_gpu.fixes import apply as applying

TEXT = "import tensorflow as tf\nds = ds.map(f)\nds = ds.batch(2)\n"
FIXED = (
    "import tensorflow as tf\nds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\n"
    "ds = ds.batch(2).prefetch(tf.data.AUTOTUNE)\n"
)


def test_all_fixes_of_a_file_in_one_round() -> None:
    project = Project({"a.py": TEXT, "b.py": "x = 1\n"})
    report = project.fix()
    (change,) = report.changed
    assert (change.path, change.before, change.after) == ("a.py", TEXT.encode(), FIXED.encode())
    assert sorted(finding.code for finding in report.fixed) == ["TFG101", "TFG102"]
    assert report.remaining == ()
    # One lint is the caller's, one takes stock, one proves the round.
    assert project.lints == 3


def test_applying_twice_changes_nothing() -> None:
    assert Project({"a.py": FIXED}).fix() == FixReport((), (), ())


def test_fixes_that_touch_each_other_take_turns() -> None:
    # The argument goes where the inner call's own fix is appended.
    text = "import tensorflow as tf\nds = ds.map(ds.batch(2))\n"
    project = Project({"a.py": text})
    inner = finding_at(place_of(text, "ds.batch(2)"), "TFG101", **PREFETCH)
    outer = finding_at(place_of(text, "ds.map(ds.batch(2))"), "TFG102", kind="add-argument", name="n", value="1")

    def lint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        now = contents.get("a.py", text.encode()).decode()
        found = []
        if "prefetch" not in now:
            found.append(replace(inner, location=place_of(now, "ds.batch(2)")))
        if "n=1" not in now:
            call = now[now.index("ds.map") : now.rindex(")") + 1]
            place = place_of(now, call)
            fix = replace(outer.fix, changes=(replace(outer.fix.changes[0], location=place),))  # type: ignore[union-attr, type-var]
            found.append(replace(outer, location=place, fix=fix))
        return found

    report = apply_fixes(lint({}), project.files.get, lint, tensorflow=(2, 15))
    assert report.changed[0].after.decode() == (
        "import tensorflow as tf\nds = ds.map(ds.batch(2).prefetch(tf.data.AUTOTUNE), n=1)\n"
    )
    assert report.remaining == ()


def test_one_import_for_two_fixes() -> None:
    report = Project({"a.py": "import os\na = ds.batch(2)\nb = ds.batch(3)\n"}).fix()
    assert report.changed[0].after.decode() == (
        "import os\nimport tensorflow as tf\n"
        "a = ds.batch(2).prefetch(tf.data.AUTOTUNE)\nb = ds.batch(3).prefetch(tf.data.AUTOTUNE)\n"
    )


def test_unsafe_fixes_need_to_be_asked_for() -> None:
    project = Project({"a.py": "import tensorflow as tf\nds = ds.batch(2)\n"})
    unsafe = [replace(item, fix=replace(item.fix, safety="unsafe")) for item in project.lint({})]  # type: ignore[type-var]
    lint = project.lint
    declined = apply_fixes(unsafe, project.files.get, lint, tensorflow=(2, 15))
    assert declined.changed == ()
    assert [refusal.reason for refusal in declined.declined] == [
        "the fix may change results; --unsafe-fixes makes it"
    ]
    assert apply_fixes(unsafe, project.files.get, lint, tensorflow=(2, 15), unsafe=True).changed


@pytest.mark.parametrize("verdict", [Verdict.REFUTED, Verdict.MASKED])
def test_what_costs_nothing_stays_even_when_lines_move(verdict: Verdict) -> None:
    text = "import os\nds = ds.map(f)\nds = ds.batch(2)\n"
    project = Project({"a.py": text})
    judged = [
        item.with_verdict(verdict) if item.code == "TFG101" else item.with_verdict(Verdict.CONFIRMED)
        for item in project.lint({})
    ]
    report = apply_fixes(judged, project.files.get, project.lint, tensorflow=(2, 15))
    assert report.changed[0].after.decode() == (
        "import os\nimport tensorflow as tf\n"
        "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.batch(2)\n"
    )
    assert [refusal.reason for refusal in report.declined] == ["the trace shows that it costs nothing here"]


def test_findings_that_were_not_given_are_not_fixed() -> None:
    project = Project({"a.py": TEXT})
    shown = [item for item in project.lint({}) if item.code == "TFG102"]
    report = apply_fixes(shown, project.files.get, project.lint, tensorflow=(2, 15))
    assert "prefetch" not in report.changed[0].after.decode()
    assert report.declined == ()


class Stubborn(Project):
    """A project in which a prefetch brings another finding, as a rule about order might."""

    def lint(self, contents: Mapping[str, bytes]) -> list[Finding]:
        found = super().lint(contents)
        text = {**self.files, **contents}["a.py"].decode()
        if "prefetch" in text:
            found.append(replace(finding_at(place_of(text, "prefetch"), "TFG110", **PREFETCH), fix=None))
        return found


def test_a_fix_that_brings_a_new_finding_is_left_out_alone() -> None:
    report = Stubborn({"a.py": TEXT}).fix()
    after = report.changed[0].after.decode()
    assert "num_parallel_calls" in after
    assert "prefetch" not in after
    assert [(item.finding.code, item.reason) for item in report.declined] == [
        ("TFG101", "the changed file would have TFG110 (a-rule) instead")
    ]


@pytest.mark.parametrize(
    ("severity", "fixed"),
    [(Severity.ERROR, False), (Severity.WARNING, False), (Severity.INFO, True), (Severity.HINT, True)],
)
def test_what_was_hidden_by_something_louder_does_not_keep_it(severity: Severity, fixed: bool) -> None:
    class Covered(Stubborn):
        def lint(self, contents: Mapping[str, bytes]) -> list[Finding]:
            return [
                replace(item, severity=severity) if item.code == "TFG110" else item
                for item in super().lint(contents)
            ]

    report = Covered({"a.py": TEXT}).fix()
    assert ("prefetch" in report.changed[0].after.decode()) is fixed
    assert [item.code for item in report.remaining] == (["TFG110"] if fixed else ["TFG101"])
    assert len(report.declined) == (0 if fixed else 1)


def test_a_fix_after_which_the_finding_is_still_there_is_left_out() -> None:
    class Blind(Project):
        def lint(self, contents: Mapping[str, bytes]) -> list[Finding]:
            return super().lint({})

    report = Blind({"a.py": "import tensorflow as tf\nds = ds.batch(2)\n"}).fix()
    assert report.changed == ()
    assert [item.reason for item in report.declined] == ["the changed file would still have the finding"]


def test_a_fix_of_several_files_is_made_whole() -> None:
    files = {"a.py": b"from b import make\nds = make()\n", "b.py": b"def make():\n    return source()\n"}
    here = Location("a.py", 2, 6, 2, 12)
    there = Location("b.py", 2, 12, 2, 20)
    appended = tuple(
        Change("append-method", place, (("argument", "2"), ("method", "prefetch"))) for place in (here, there)
    )
    finding = replace(finding_at(here, **PREFETCH), fix=Fix("safe", "prefetch both", appended))

    def lint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        texts = {**files, **contents}
        return [] if all(b"prefetch" in text for text in texts.values()) else [finding]

    report = apply_fixes([finding], files.get, lint, tensorflow=(2, 15))
    assert [(change.path, change.after.splitlines()[1]) for change in report.changed] == [
        ("a.py", b"ds = make().prefetch(2)"),
        ("b.py", b"    return source().prefetch(2)"),
    ]
    assert report.fixed == (finding,)
    gone = {path: text for path, text in files.items() if path == "a.py"}
    left = apply_fixes([finding], gone.get, lint, tensorflow=(2, 15))
    assert left.changed == ()
    assert [refusal.reason for refusal in left.declined] == ["b.py cannot be read"]


def test_parts_of_a_fix_that_want_the_same_place_are_declined() -> None:
    text = "import tensorflow as tf\nds = ds.map(f, num_parallel_calls=None)\n"
    place = place_of(text, "ds.map(f, num_parallel_calls=None)")
    twice = tuple(
        Change("add-argument", place, (("name", "num_parallel_calls"), ("value", value))) for value in ("2", "4")
    )
    finding = replace(finding_at(place, **PARALLEL), fix=Fix("safe", "both", twice))
    edits, reason = edits_of(finding, lambda _: text.encode(), (2, 15))
    assert (edits, reason) == ((), "two parts of the fix want the same characters")


def test_an_edit_whose_places_are_in_two_files_is_declined() -> None:
    text = "import tensorflow as tf\nfor i in x:\n    f = g(i)\n    h = g(2)\n"
    here, there = place_of(text, "h = g(2)"), replace(place_of(text, "x"), path="b.py")
    fix = Fix("safe", "move it", (Change("hoist", here, (), (there,)),))
    finding = replace(finding_at(here, **PREFETCH), fix=fix)
    assert edits_of(finding, lambda _: text.encode(), (2, 15)) == (
        (),
        "the places of the fix are in different files",
    )


def test_only_the_files_with_a_culprit_are_taken_apart() -> None:
    files = {f"{letter}.py": TEXT.replace("TEXT", letter) for letter in "bcdefghi"}
    project = Stubborn({"a.py": TEXT, **files})
    report = project.fix()
    assert all(change.after == FIXED.encode() for change in report.changed if change.path != "a.py")
    assert len(report.changed) == 9
    assert [refusal.finding.location.path for refusal in report.declined] == ["a.py"]
    # Halves of halves, not file by file.
    assert project.lints < 16


def test_a_finding_that_two_runs_share_counts_once() -> None:
    text = "import tensorflow as tf\nds = ds.batch(2)\n"
    twice = finding_at(place_of(text, "ds.batch(2)"), **PREFETCH)
    shared = replace(finding_at(place_of(text, "import tensorflow as tf"), **PREFETCH), code="TFG606", fix=None)
    other = replace(shared, location=place_of(text, "ds.batch(2)"))

    def lint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        # As many as before, but at two places where there was one.
        return [shared, other] if contents else [twice, shared, shared]

    report = apply_fixes([twice], {"a.py": text.encode()}.get, lint, tensorflow=(2, 15))
    assert report.changed == ()
    assert len(report.declined) == 1


def test_a_fix_that_does_not_help_is_declined() -> None:
    text = "import tensorflow as tf\nds = ds.batch(2)\n"
    stuck = finding_at(place_of(text, "ds.batch(2)"), **PREFETCH)
    report = apply_fixes([stuck], {"a.py": text.encode()}.get, lambda _: [stuck], tensorflow=(2, 15))
    assert report.changed == ()
    assert len(report.declined) == 1


def test_rounds_are_bounded() -> None:
    text = "import tensorflow as tf\nds = f(ds)\n"
    place = place_of(text, "f(ds)")

    def lint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        now = contents.get("a.py", text.encode()).decode()
        return [
            finding_at(place, f"TFG{100 + number}", kind="append-method", method=f"m{number}")
            for number in range(20)
            if f".m{number}(" not in now
        ]

    report = apply_fixes(lint({}), {"a.py": text.encode()}.get, lint, tensorflow=(2, 15))
    assert report.changed[0].after.count(b".m") == applying.MAX_ROUNDS
    assert len(report.remaining) == 20 - applying.MAX_ROUNDS


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfimport tensorflow as tf\r\nds = ds.batch(2)  # \xc3\xa9\r\n",
        b"# -*- coding: latin-1 -*-\nimport tensorflow as tf\nds = ds.batch(2)  # \xe9\n",
        b"import tensorflow as tf\rds = ds.batch(2)\r",
        b"import tensorflow as tf\r\nx = 1\nds = ds.batch(2)\r\n\r\n\n",
        b"import tensorflow as tf\nds = ds.batch(2)",
    ],
    ids=["mark of UTF-8 and CRLF", "latin-1", "CR alone", "mixed line ends", "no final line end"],
)
def test_every_other_byte_stays(raw: bytes) -> None:
    lines = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    number = 1 + next(index for index, line in enumerate(lines) if line.startswith(b"ds = "))
    place = replace(place_of("ds = ds.batch(2)", "ds.batch(2)"), line=number, end_line=number)
    finding = finding_at(place, **PREFETCH)

    def lint(contents: Mapping[str, bytes]) -> Sequence[Finding]:
        return [] if b"prefetch" in contents.get("a.py", raw) else [finding]

    report = apply_fixes([finding], {"a.py": raw}.get, lint, tensorflow=(2, 15))
    at = raw.index(b"ds.batch(2)") + len(b"ds.batch(2)")
    assert report.changed[0].after == raw[:at] + b".prefetch(tf.data.AUTOTUNE)" + raw[at:]


@pytest.mark.parametrize("text", [TEXT, TEXT.rstrip("\n"), TEXT.replace("\n", "\r\n")], ids=["LF", "open", "CRLF"])
def test_git_applies_the_diff(text: str, tmp_path: Path) -> None:
    report = Project({"a.py": text}).fix()
    path = tmp_path / "a.py"
    path.write_bytes(text.encode())
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=report.diff().encode(), check=True)
    assert path.read_bytes() == report.changed[0].after


def test_severity_is_no_condition() -> None:
    project = Project({"a.py": TEXT})
    quiet = [replace(item, severity=Severity.INFO) for item in project.lint({})]
    assert apply_fixes(quiet, project.files.get, project.lint, tensorflow=(2, 15)).changed
