"""Several evidence files: which stand side by side, and that each keeps its own."""

from __future__ import annotations

from dataclasses import replace

from tests.checks.conftest import evidence_of
from tflint_gpu.trace.evidence import straggler
from tflint_gpu.trace.joined import join
from tflint_gpu.trace.usage import HostUse


def test_runs_of_one_program_are_its_hosts() -> None:
    early = evidence_of(buckets={"input_wait": 1.0, "collectives": 6.0})
    late = replace(evidence_of(buckets={"input_wait": 6.0, "collectives": 1.0}), made_at="later")
    whole = join({"a.json": early, "b.json": late})
    assert [host.name for host in whole.hosts] == ["a.json", "b.json"]
    assert [host.own_ms for host in whole.hosts] == [4.0, 9.0]
    slowest = straggler(whole.hosts)
    assert slowest is not None
    assert slowest.name == "b.json"
    assert whole.others == (late,)


def test_other_programs_are_no_hosts() -> None:
    one = evidence_of(buckets={"input_wait": 1.0})
    other = replace(one, command=("evaluate.py",))
    assert join({"a": one, "b": other}).hosts == ()
    assert join({"a": one, "b": other}).others == (other,)


def test_one_file_twice_counts_once() -> None:
    one = evidence_of(buckets={"input_wait": 1.0})
    assert join({"a": one, "./a": one}) == one


def test_hosts_that_a_profile_tells_are_kept() -> None:
    known = replace(evidence_of(buckets={"input_wait": 1.0}), hosts=(HostUse("x", 3), HostUse("y", 3)))
    assert join({"a": known, "b": replace(known, made_at="later")}).hosts == known.hosts
