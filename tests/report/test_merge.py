"""The merge: which verdict a finding gets, and in which order findings stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.report.conftest import evidence
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.checks.pages import Page
from tflint_gpu.findings import Finding, Impact, Location, Measure, Related, Severity, Verdict
from tflint_gpu.program.target import Target
from tflint_gpu.report import Report, Texts, merge
from tflint_gpu.trace.evidence import Evidence, Spot
from tflint_gpu.trace.follow import remember

Make = Callable[..., Finding]


class Scripted(Check):
    """A check that says what the test wants."""

    judgement: Judgement | None = None
    seen: tuple[Finding, ...] = ()
    fault: Exception | None = None

    def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
        if self.fault:
            raise self.fault
        return self.judgement

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        yield from self.seen


@pytest.fixture
def check(rules: dict[str, Page]) -> Callable[..., Scripted]:
    def make(code: str = "TFG101", severity: Severity | None = None, **parts: object) -> Scripted:
        page = rules[code]
        scripted = Scripted(page, page.severity if severity is None else severity, {})
        for name, value in parts.items():
            setattr(scripted, name, value)
        return scripted

    return make


def merged(findings: list[Finding], checks: list[Check], seen: Evidence | None, texts: Texts) -> Report:
    return merge(findings, checks, seen, files=3, target=Target(), texts=texts)


CONFIRMED = Judgement(Verdict.CONFIRMED, (Measure("input_wait_share", 0.61),), Impact(0.5, "what-if"))


def test_without_evidence_nothing_is_measured(finding: Make, check: Callable, texts: Texts) -> None:
    report = merged([finding("TFG101", ("train.py", 11))], [check(judgement=CONFIRMED)], None, texts)
    assert [item.verdict for item in report.findings] == [Verdict.UNMEASURED]
    assert report.notes == ()


def test_the_check_is_the_judge(finding: Make, check: Callable, texts: Texts) -> None:
    report = merged([finding("TFG101", ("train.py", 11))], [check(judgement=CONFIRMED)], evidence(texts), texts)
    (item,) = report.findings
    assert item.verdict is Verdict.CONFIRMED
    assert item.evidence == CONFIRMED.measures
    assert item.impact == CONFIRMED.impact


def test_a_judge_that_cannot_see_leaves_it_unmeasured(finding: Make, check: Callable, texts: Texts) -> None:
    report = merged([finding("TFG101", ("train.py", 11))], [check()], evidence(texts), texts)
    assert report.findings[0].verdict is Verdict.UNMEASURED


def test_a_changed_file_is_stale(finding: Make, check: Callable, texts: Texts) -> None:
    before = evidence(texts)
    with (texts.root / "train.py").open("a", encoding="utf-8") as stream:
        stream.write("# changed\n")
    observed = finding("TFG501", ("train.py", 17))
    report = merged(
        [finding("TFG101", ("train.py", 11)), finding("TFG101", ("data.py", 4))],
        [check(judgement=CONFIRMED), check("TFG501", seen=(observed,))],
        before,
        texts,
    )
    verdicts = {item.location.path: item.verdict for item in report.findings}
    assert verdicts == {"train.py": Verdict.UNMEASURED, "data.py": Verdict.CONFIRMED}
    assert report.notes == ("train.py has changed since the trace, so its findings are unmeasured: trace again",)


@pytest.mark.parametrize(
    ("ran", "verdict"),
    [((1, 2, 12), Verdict.CONFIRMED), ((1, 2, 17), Verdict.NOT_EXERCISED)],
    ids=["one line of the statement ran", "no line ran"],
)
def test_code_that_never_ran(
    ran: tuple[int, ...], verdict: Verdict, finding: Make, check: Callable, texts: Texts
) -> None:
    item = finding("TFG101", ("train.py", 11, 9, 12, 19))
    seen = evidence(texts, executed={"train.py": ran})
    assert merged([item], [check(judgement=CONFIRMED)], seen, texts).findings[0].verdict is verdict


def test_a_module_that_the_run_never_loaded_is_not_exercised(finding: Make, check: Callable, texts: Texts) -> None:
    (texts.root / "other.py").write_text("x = 1\n", encoding="utf-8")
    (texts.root / "requirements.txt").write_text("tensorflow\n", encoding="utf-8")
    seen = evidence(texts, executed={"train.py": (11,)})
    report = merged(
        [finding("TFG101", ("other.py", 1)), finding("TFG101", ("requirements.txt", 1))],
        [check(judgement=CONFIRMED)],
        seen,
        texts,
    )
    verdicts = {item.location.path: item.verdict for item in report.findings}
    assert verdicts == {"other.py": Verdict.NOT_EXERCISED, "requirements.txt": Verdict.CONFIRMED}


def test_a_run_that_recorded_no_lines_says_nothing_of_them(finding: Make, check: Callable, texts: Texts) -> None:
    seen = evidence(texts, executed={})
    report = merged([finding("TFG101", ("other.py", 1))], [check(judgement=CONFIRMED)], seen, texts)
    assert report.findings[0].verdict is Verdict.CONFIRMED


def test_evidence_from_another_folder_judges_nothing(finding: Make, check: Callable, texts: Texts) -> None:
    seen = evidence(sources={"elsewhere/train.py": "00"}, executed={"elsewhere/train.py": (1,)})
    report = merged([finding("TFG101", ("train.py", 11))], [check(judgement=CONFIRMED)], seen, texts)
    assert report.findings[0].verdict is Verdict.UNMEASURED
    assert "run the check in the folder where the trace was started" in report.notes[0]


@pytest.mark.parametrize("verdict", [Verdict.REFUTED, Verdict.MASKED, Verdict.MINOR])
def test_quiet_verdicts_are_info_at_most(verdict: Verdict, finding: Make, check: Callable, texts: Texts) -> None:
    loud = finding("TFG501", ("train.py", 17))
    report = merged([loud], [check("TFG501", judgement=Judgement(verdict))], evidence(texts), texts)
    assert loud.severity is Severity.ERROR
    assert report.findings[0].severity is Severity.INFO


def test_a_judge_is_no_louder_than_the_settings(finding: Make, check: Callable, texts: Texts) -> None:
    judgement = replace(CONFIRMED, severity=Severity.ERROR)
    info = check(severity=Severity.INFO, judgement=judgement)
    report = merged([finding("TFG101", ("train.py", 11))], [info], evidence(texts), texts)
    assert report.findings[0].severity is Severity.INFO


def test_what_the_trace_saw_is_observed(finding: Make, check: Callable, texts: Texts) -> None:
    seen = check("TFG501", seen=(finding("TFG501", ("train.py", 17)),))
    (item,) = merged([], [seen], evidence(texts), texts).findings
    assert item.verdict is Verdict.OBSERVED


def test_a_rule_stands_once_at_a_place(finding: Make, check: Callable, texts: Texts) -> None:
    static = finding("TFG501", ("train.py", 16, 1, 18, 5))
    seen = check("TFG501", seen=(finding("TFG501", ("train.py", 17)), finding("TFG501", ("data.py", 4))))
    report = merged([static, static], [seen], evidence(texts), texts)
    assert [(item.location.path, item.location.line) for item in report.findings] == [
        ("data.py", 4),
        ("train.py", 16),
    ]


def test_of_two_equals_the_loudest_stays(finding: Make, texts: Texts) -> None:
    loud = finding("TFG101", ("train.py", 11))
    quiet = replace(loud, severity=Severity.HINT, message="quiet")
    assert merged([quiet, loud], [], None, texts).findings == (loud,)


def test_order_is_impact_then_severity_then_proof_then_place(finding: Make, texts: Texts) -> None:
    dear = finding("TFG101", ("z.py", 9), severity=Severity.INFO, impact=Impact(0.4, "what-if"))
    cheap = finding("TFG101", ("a.py", 1), impact=Impact(0.1, "what-if"))
    error = finding("TFG501", ("m.py", 5))
    proven = finding("TFG101", ("y.py", 1), verdict=Verdict.CONFIRMED)
    first, second = finding("TFG101", ("b.py", 2)), finding("TFG101", ("b.py", 10))
    report = merged([second, first, proven, error, cheap, dear], [], None, texts)
    assert report.findings == (dear, cheap, error, proven, first, second)


def test_a_rule_that_fails_costs_no_report(finding: Make, check: Callable, texts: Texts) -> None:
    faulty = check(fault=ZeroDivisionError("no steps"))
    report = merged([finding("TFG101", ("train.py", 11))], [faulty], evidence(texts), texts)
    assert report.findings[0].verdict is Verdict.UNMEASURED
    (error,) = report.errors
    assert (error.path, error.line) == ("train.py", 11)
    assert error.message.startswith("rule TFG101 missing-prefetch failed judging the evidence (ZeroDivisionError")
    assert error.message.endswith("leave it out with --ignore TFG101")


def test_a_path_of_the_trace_alone_is_never_stale(finding: Make, check: Callable, texts: Texts) -> None:
    nowhere = replace(finding("TFG501", ("", 1)), location=Location("", 1))
    report = merged([], [check("TFG501", seen=(nowhere,))], evidence(texts), texts)
    assert [item.location.path for item in report.findings] == [""]


@pytest.mark.parametrize(
    ("judgement", "only_on_gpu", "gpu", "reason"),
    [
        (None, "", False, "the trace saw nothing of it, or too little to tell"),
        (None, "what it costs", False, "only a GPU shows what it costs"),
        (None, "what it costs", True, "the trace saw nothing of it, or too little to tell"),
        (Judgement(Verdict.UNMEASURED, reason="too short"), "what it costs", False, "too short"),
        (CONFIRMED, "what it costs", False, ""),
    ],
)
def test_what_a_trace_leaves_unmeasured_says_why(
    finding: Make,
    check: Callable,
    texts: Texts,
    judgement: Judgement | None,
    only_on_gpu: str,
    gpu: bool,
    reason: str,
) -> None:
    scripted = check(judgement=judgement, only_on_gpu=only_on_gpu)
    report = merged([finding("TFG101", ("train.py", 11))], [scripted], evidence(gpu=gpu), texts)
    (item,) = (each for each in report.findings if each.code == "TFG101")
    assert item.reason == reason


def test_a_rule_that_no_trace_judges_says_so(finding: Make, check: Callable, texts: Texts) -> None:
    scripted = check()
    scripted.page = replace(scripted.page, phases=("static",))
    report = merged([finding("TFG101", ("train.py", 11))], [scripted], evidence(), texts)
    assert report.findings[0].reason == "a trace does not judge this rule"


def test_what_is_observed_at_a_call_does_not_repeat_what_stands_at_its_function(
    finding: Make, check: Callable, texts: Texts
) -> None:
    known = finding("TFG101", ("train.py", 11))
    seen = replace(finding("TFG101", ("train.py", 31)), related=(Related(known.location, "it stands here"),))
    report = merged([known], [check(seen=(seen,))], evidence(), texts)
    assert [item.location.line for item in report.findings] == [11]


def remembered(texts: Texts, **parts: object) -> Evidence:
    """Evidence that knows the lines of ``train.py`` and ``data.py``."""
    seen = evidence(texts, **parts)
    lines: dict[str, str] = {}
    for path in ("train.py", "data.py"):
        lines |= remember(path, texts.raw(path) or b"")
    return replace(seen, lines=lines)


def edit(texts: Texts, path: str, old: str, new: str) -> Texts:
    """Edit a file, and return texts that see it."""
    file = texts.root / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return Texts(texts.root)


def test_verdicts_and_observations_follow_lines_that_moved(finding: Make, check: Callable, texts: Texts) -> None:
    before = remembered(texts)
    later = edit(texts, "train.py", "", "# new\n\n")
    observed = finding("TFG501", ("train.py", 19))
    checks = [check(judgement=CONFIRMED), check("TFG501", seen=(observed,))]
    report = merged([finding("TFG101", ("train.py", 13))], checks, before, later)
    assert {item.verdict for item in report.findings} == {Verdict.CONFIRMED, Verdict.OBSERVED}
    assert report.notes == ()
    assert report.evidence is not None
    assert report.evidence.window is not None
    assert report.evidence.window.spot == Spot("train.py", 20)


def test_where_code_changed_only_standing_lines_keep_their_verdict(
    finding: Make, check: Callable, texts: Texts
) -> None:
    before = remembered(texts)
    line = texts.lines("train.py")[16]
    later = edit(texts, "train.py", line, line + "  + 0")
    observed = finding("TFG501", ("train.py", 18))
    checks = [check(judgement=CONFIRMED), check("TFG501", seen=(observed,))]
    items = [finding("TFG101", ("train.py", 11)), finding("TFG101", ("train.py", 17))]
    related = replace(
        items[0], location=Location("train.py", 12), related=(Related(Location("train.py", 17), "x"),)
    )
    report = merged([*items, related], checks, before, later)
    verdicts = {item.location.line: item.verdict for item in report.findings}
    assert verdicts == {11: Verdict.CONFIRMED, 17: Verdict.UNMEASURED, 12: Verdict.UNMEASURED}
    assert report.notes == (
        "train.py has changed since the trace: verdicts stand where its lines do, the rest is unmeasured",
    )


def test_of_several_runs_the_verdict_that_says_most_stands(finding: Make, check: Callable, texts: Texts) -> None:
    class Reader(Scripted):
        """Judges by what the evidence itself says."""

        def judge(self, finding: Finding, evidence: Evidence) -> Judgement | None:
            share = evidence.facts["share"]
            return share and Judgement(Verdict(share[0]), (), Impact(share[1], "x") if share[1] else None)

    def run(*share: object) -> Evidence:
        return evidence(texts, facts={"share": share})

    rule = Reader(check().page, Severity.WARNING, {})
    item = finding("TFG101", ("train.py", 11))
    runs = [run("refuted", None), run("confirmed", 0.2), run("confirmed", 0.4), run("minor", None)]
    report = merged([item], [rule], replace(runs[0], others=tuple(runs[1:])), texts)
    (kept,) = report.findings
    assert kept.verdict is Verdict.CONFIRMED
    assert kept.impact == Impact(0.4, "x")
    assert report.evidence_for(kept) == runs[2]
    assert report.evidence is not None
    assert len(report.evidence.others) == 3


def test_what_one_run_never_reached_another_may_have_measured(
    finding: Make, check: Callable, texts: Texts
) -> None:
    item = finding("TFG101", ("train.py", 11))
    without = evidence(texts, executed={"train.py": (1,)})
    report = merged([item], [check(judgement=CONFIRMED)], replace(without, others=(evidence(texts),)), texts)
    assert report.findings[0].verdict is Verdict.CONFIRMED
    neither = merged([item], [check()], replace(without, others=(evidence(texts),)), texts)
    assert neither.findings[0].verdict is Verdict.UNMEASURED


def test_two_runs_observe_one_thing_once(finding: Make, check: Callable, texts: Texts) -> None:
    seen = check("TFG501", seen=(finding("TFG501", ("train.py", 17)),))
    report = merged([], [seen], replace(evidence(texts), others=(evidence(texts),)), texts)
    assert [item.verdict for item in report.findings] == [Verdict.OBSERVED]
