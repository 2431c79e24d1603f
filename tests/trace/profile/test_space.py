from pathlib import Path

import pytest

from tests.trace.profile.spaces import SHARED, at, host, needs_profiles, plane, write
from tflint_gpu.errors import UserError
from tflint_gpu.trace.profile import read_profile
from tflint_gpu.trace.profile.messages import message
from tflint_gpu.trace.profile.space import read_space

DAMAGED = ["bitflip", "empty", "random", "truncated_half", "utf8-mangled"]


@needs_profiles
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_told_in_one_sentence(name):
    with pytest.raises(UserError) as told:
        read_profile(SHARED / "corrupt" / f"{name}.xplane.pb")
    assert f"{name}.xplane.pb" in str(told.value)
    assert "record it again" in str(told.value)
    assert "\n" not in str(told.value)


def test_every_cut_of_a_file_is_refused_or_read(tmp_path: Path):
    whole = write(
        tmp_path / "whole.xplane.pb", host({"python": [at("train", 0, 10, step_num=1), at("x/y:Mul", 2, 3)]})
    ).read_bytes()
    for end in range(len(whole)):
        cut = tmp_path / "cut.xplane.pb"
        cut.write_bytes(whole[:end])
        with pytest.raises(UserError):
            read_profile(cut)


def test_names_that_are_no_utf8_are_read(tmp_path: Path):
    built = plane("/host:CPU", {"python": [at("caf#", 0, 1)]}).replace(b"caf#", b"caf\xe9")
    (found,) = read_space(write(tmp_path / "x.xplane.pb", built))
    assert list(found.names.values()) == ["caf�"]


def test_stats_by_name_and_only_the_wanted(tmp_path: Path):
    built = host({"python": [at("op", 0, 1, step_num=7, long="text", **{f"s{n}": n for n in range(200)})]})
    (found,) = read_space(write(tmp_path / "x.xplane.pb", built))
    (event,) = next(found.lines()).events
    assert found.stats(event)["long"] == "text"
    assert found.stats(event, frozenset({"step_num", "s3", "s199"})) == {"step_num": 7, "s3": 3, "s199": 199}


def test_stats_of_every_kind_read_alike_fast_and_slow(tmp_path: Path):
    names = {1: "small", 2: "negative", 3: "large", 4: "text", 5: "ref", 6: "half", 300: "far", 301: "far text"}
    values = [
        (1, "int64_value", 7),
        (2, "int64_value", -5),
        (3, "uint64_value", 1 << 63),
        (4, "str_value", b"caf\xe9"),
        (5, "ref_value", 4),
        (6, "double_value", 0.5),
        (300, "int64_value", 1 << 40),
        (301, "str_value", b"x" * 200),
    ]
    built = message("XPlane")(name=b"/host:CPU")
    for number, name in names.items():
        built.stat_metadata.add(key=number).value.name = name.encode()
    line = message("XLine")(id=1)
    stats = [message("XStat")(metadata_id=number, **{field: value}) for number, field, value in values]
    line.events.add(metadata_id=1).stats.extend(stat.SerializeToString() for stat in stats)
    built.lines.append(line.SerializeToString())
    (found,) = read_space(write(tmp_path / "x.xplane.pb", built.SerializeToString()))
    (event,) = next(found.lines()).events
    told = {"small": 7, "negative": -5, "large": 1 << 63, "text": "caf\ufffd", "ref": "text", "half": 0.5}
    assert found.stats(event) == {**told, "far": 1 << 40, "far text": "x" * 200}
    assert found.reader(frozenset({"far", "ref"}))(event) == {"far": 1 << 40, "ref": "text"}


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(UserError, match=r"nothing\.xplane\.pb: cannot read the profile"):
        read_space(tmp_path / "nothing.xplane.pb")


@pytest.mark.parametrize("name", ["/host:CPU", "/device:GPU:0"])
def test_a_line_that_is_damaged_inside_is_told_when_it_is_read(tmp_path: Path, name: str):
    lines = {"python": [at("train", 0, 10, step_num=1)], "Stream #1": [at("gemm", 1, 2)]}
    negative = message("XLine")(id=1, name=b"Stream #2")
    negative.events.add(metadata_id=1, offset_ps=5, duration_ps=-5)
    early = message("XLine")(timestamp_ns=-1)
    for damage in (b"\xff\xff\xff", negative.SerializeToString(), early.SerializeToString()):
        built = message("XPlane").FromString(plane(name, lines))
        built.lines.append(damage)
        file = write(tmp_path / "x.xplane.pb", built.SerializeToString())
        with pytest.raises(UserError, match="record it again"):
            read_profile(file)
