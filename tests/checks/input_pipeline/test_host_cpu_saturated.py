"""What the page of host-cpu-saturated does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named
from tests.checks.snippets import SETUP
from tflint_gpu.findings import Severity

NAME = "host-cpu-saturated"
PIN = "def pin(mode):\n    if mode == 'one':\n        os.sched_setaffinity(0, [3])\n\n"
FIT = "model.compile('adam', 'mse')\nmodel.fit(ds.map(lambda x, y: (tf.image.resize(x, (8, 8)), y)), epochs=9)\n"


def test_way_to_pin_that_a_switch_chooses_is_info(analyse: Analyse) -> None:
    head = "import os, sys\n" + SETUP
    assert [f.severity for f in named(analyse(head + PIN + "pin(sys.argv[1])\n" + FIT), NAME)] == [Severity.INFO]
    sure = "os.sched_setaffinity(0, [3])\n"
    assert [f.severity for f in named(analyse(head + sure + FIT), NAME)] == [Severity.WARNING]
