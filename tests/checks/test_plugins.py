"""Rules of other packages: where they show, and what is said of those that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGE = """\
+++
code = "ACME101"
name = "large-prefetch"
factor = "input-pipeline"
severity = "warning"
phases = ["static"]
since = "1.0"
fix = "none"
summary = "A prefetch holds so many batches ready that it takes memory and gives nothing back."

[options]
batches = 100
+++

# large-prefetch (ACME101)

## What it does

Reports `prefetch(n)` in a training pipeline where n is a number above `batches`.
"""
MODULE = """\
from tflint_gpu.checks.check import Check
from tflint_gpu.program.views import literal


class LargePrefetch(Check):
    needles = (".prefetch(",)

    def find(self, program):
        for run in program.runs:
            for _, stage in run.pipeline.stages_of("prefetch") if run.pipeline else ():
                count = literal(stage.call.argument("buffer_size"))
                if isinstance(count, int) and count > self.options["batches"]:
                    yield self.at(stage.call, f"prefetch({count}) holds {count} batches in memory.")
"""
TRAIN = """\
import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices((tf.zeros([8192, 64]), tf.zeros([8192])))
ds = ds.shuffle(1024).batch(256).prefetch(1000)
model = tf.keras.Sequential([tf.keras.layers.Dense(512)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""

#: Runs a command line with a folder of installed packages; returns the status and both outputs.
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Install a distribution with one rule into a folder, as `pip install --target` leaves it."""
    return install(tmp_path / "packages")


def install(
    folder: Path, *, page: str = PAGE, module: str = MODULE, entry: str = "acme_rules.large_prefetch"
) -> Path:
    package = folder / "acme_rules"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "large_prefetch.py").write_text(module)
    (package / "large-prefetch.md").write_text(page)
    metadata = folder / "acme_rules-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(f"[tflint_gpu.checks]\nlarge-prefetch = {entry}\n")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Run:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    (project / "other.py").write_text("print(1)\n")

    def command(packages: Path, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "tflint_gpu", *arguments],
            cwd=project,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    return command


def test_a_rule_of_another_package_is_listed_explained_and_found(installed: Path, run: Run) -> None:
    listed = json.loads(run(installed, "rules", "--output-format", "json")[1])
    (ours,) = [row for row in listed if row["code"] == "ACME101"]
    assert (ours["name"], ours["plugin"]) == ("large-prefetch", "acme-rules 1.2")
    assert run(installed, "explain", "acme101")[1].startswith("# large-prefetch (ACME101)")

    status, out, _ = run(installed, "check", "train.py", "--output-format", "json")
    found = {finding["code"]: finding for finding in json.loads(out)["findings"]}
    assert (status, found["ACME101"]["line"], found["ACME101"]["severity"]) == (1, 4, "warning")


def test_sarif_describes_it(installed: Path, run: Run) -> None:
    (log,) = json.loads(run(installed, "check", "train.py", "--output-format", "sarif")[1])["runs"]
    (rule,) = [rule for rule in log["tool"]["driver"]["rules"] if rule["id"] == "ACME101"]
    assert "large-prefetch" in rule["help"]["text"]
    assert "ACME101" in {result["ruleId"] for result in log["results"]}


@pytest.mark.parametrize(
    ("flags", "there"),
    [
        (("--select", "large-prefetch"), True),
        (("--select", "ACME101", "--config", "rules.ACME101.batches = 2000"), False),
        (("--ignore", "acme101"), False),
        (("--select", "input-pipeline"), True),
    ],
)
def test_it_is_selected_and_set_like_any_other(
    installed: Path, run: Run, flags: tuple[str, ...], there: bool
) -> None:
    status, out, err = run(installed, "check", "train.py", "--output-format", "json", *flags)
    assert status in (0, 1), err
    assert ("ACME101" in {finding["code"] for finding in json.loads(out)["findings"]}) is there


def test_the_cache_notices_that_a_plugin_changed(installed: Path, run: Run) -> None:
    for batches, there in ((100, True), (5000, False)):
        (installed / "acme_rules/large-prefetch.md").write_text(PAGE.replace("= 100", f"= {batches}"))
        for _ in range(2):
            out = run(installed, "check", "train.py", "--output-format", "json")[1]
            assert ("ACME101" in out) is there
    assert "ACME101" not in run(installed.parent / "nothing", "check", "train.py")[1]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"module": "import no_such_module\n"}, "No module named 'no_such_module'"),
        ({"module": "x = 1\n"}, "one subclass of Check"),
        ({"module": "raise SystemError('boom')\n"}, "boom"),
        ({"entry": "acme_rules.nowhere"}, "acme_rules.nowhere"),
        ({"entry": "nowhere.at_all"}, "nowhere"),
        ({"page": PAGE.replace('severity = "warning"', 'severity = "loud"')}, "loud"),
        ({"page": PAGE.replace("[options]", "[options")}, "front matter"),
        ({"page": PAGE.replace('since = "1.0"\n', "")}, "since"),
        ({"page": PAGE.replace("ACME101", "TFG101")}, "TFG101"),
        ({"page": PAGE.replace('"large-prefetch"', '"other"')}, "'other'"),
        ({"page": PAGE.replace("input-pipeline", "speed")}, "'speed'"),
        ({"page": "no front matter"}, "front matter"),
    ],
)
def test_a_broken_plugin_is_one_sentence_that_names_it(
    tmp_path: Path, run: Run, broken: dict[str, str], words: str
) -> None:
    status, out, err = run(install(tmp_path / "packages", **broken), "check", "train.py")
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "acme-rules 1.2" in err and words in err and "uninstall" in err


@pytest.mark.install
def test_a_distribution_installed_by_pip(tmp_path: Path, run: Run) -> None:
    built = install(tmp_path / "built")
    (built / "acme_rules-1.2.dist-info/WHEEL").write_text(
        "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    (built / "acme_rules-1.2.dist-info/RECORD").touch()
    wheel = tmp_path / "acme_rules-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in sorted(path for path in built.rglob("*") if path.is_file()):
            archive.write(file, file.relative_to(built))
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, timeout=120)
    assert "ACME101" in run(target, "check", "train.py")[1]


def test_two_rules_of_one_name_are_refused(tmp_path: Path, run: Run) -> None:
    page = PAGE.replace("large-prefetch", "missing-prefetch")
    folder = install(tmp_path / "packages", page=page)
    (folder / "acme_rules/large-prefetch.md").rename(folder / "acme_rules/missing-prefetch.md")
    points = folder / "acme_rules-1.2.dist-info/entry_points.txt"
    points.write_text(points.read_text().replace("large-prefetch =", "missing-prefetch ="))
    status, _, err = run(folder, "check", "train.py")
    assert status == 2
    assert "acme-rules 1.2" in err and "missing-prefetch" in err


def test_a_file_without_tensorflow_asks_for_no_plugin(tmp_path: Path, run: Run) -> None:
    broken = install(tmp_path / "packages", page="nothing")
    assert run(broken, "check", "other.py")[0] == 0
    assert run(broken, "check", "other.py", "--select", "TFG101")[0] == 0
