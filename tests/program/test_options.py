"""Settings: dicts, argparse, absl flags, ConfigDict, the environment; defaults are soft."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, plain, sizes, trained
from tflint_gpu.program.values import Const

#: Programs that train on `base` in batches of 32.
PROGRAMS = {
    "dict": """
c = {'n': 32}
model.fit(base.batch(c['n']))
""",
    "dict nested": """
c = {'d': {'n': 32}}
model.fit(base.batch(c['d']['n']))
""",
    "dict get": """
c = {'n': 32}
model.fit(base.batch(c.get('n', 1)))
""",
    "dict set": """
c = {}
c['n'] = 32
model.fit(base.batch(c['n']))
""",
    "dict merge": """
c = {**{'n': 1}, 'n': 32}
model.fit(base.batch(c['n']))
""",
    "dict or": """
c = {'n': 1} | {'n': 32}
model.fit(base.batch(c['n']))
""",
    "dict ior": """
c = {'n': 1}
c |= {'n': 32}
model.fit(base.batch(c['n']))
""",
    "dict update": """
c = {'n': 1}
c.update(n=32)
model.fit(base.batch(c['n']))
""",
    "configdict": """
import ml_collections
c = ml_collections.ConfigDict()
c.n = 32
model.fit(base.batch(c.n))
""",
    "configdict2": """
import ml_collections
def get_config():
    config = ml_collections.ConfigDict()
    config.data = ml_collections.ConfigDict()
    config.data.n = 32
    return config
model.fit(base.batch(get_config().data.n))
""",
    "argparse": """
import argparse
p = argparse.ArgumentParser()
p.add_argument('-n', '--batch-size', type=int, default=32)
a = p.parse_args()
model.fit(base.batch(a.batch_size))
""",
    "argparse group": """
import argparse
p = argparse.ArgumentParser()
g = p.add_argument_group('x')
g.add_argument('--n', type=int, default=32)
a, _ = p.parse_known_args()
model.fit(base.batch(a.n))
""",
    "argparse vars": """
import argparse
p = argparse.ArgumentParser()
p.add_argument('--n', type=int, default=32)
a = vars(p.parse_args())
model.fit(base.batch(a['n']))
""",
    "argparse kwargs": """
import argparse
p = argparse.ArgumentParser()
p.add_argument('--n', type=int, default=32)
def run(n): model.fit(base.batch(n))
run(**vars(p.parse_args()))
""",
    "argparse fn": """
import argparse
def parse():
    p = argparse.ArgumentParser()
    p.add_argument('--n', type=int, default=32)
    return p.parse_args()
def main():
    args = parse()
    model.fit(base.batch(args.n))
if __name__ == '__main__':
    main()
""",
    "argparse prop": """
import argparse
class O:
    def __init__(self):
        self.p = argparse.ArgumentParser()
        self.p.add_argument('--n', type=int, default=32)
    def parse(self): return self.p.parse_args()
model.fit(base.batch(O().parse().n))
""",
    "absl": """
from absl import app, flags
FLAGS = flags.FLAGS
flags.DEFINE_integer('n', 32, '')
def main(argv): model.fit(base.batch(FLAGS.n))
if __name__ == '__main__': app.run(main)
""",
    "absl ret": """
from absl import app, flags
N = flags.DEFINE_integer('n', 32, '')
def main(argv): model.fit(base.batch(N.value))
if __name__ == '__main__': app.run(main)
""",
    "tf flags": """
flags = tf.compat.v1.flags
FLAGS = flags.FLAGS
flags.DEFINE_integer('n', 32, '')
def main(argv): model.fit(base.batch(FLAGS.n))
if __name__ == '__main__': tf.compat.v1.app.run(main)
""",
    "click": """
import click
@click.command()
@click.option('--batch-size', '-n', type=int, default=32)
def main(batch_size): model.fit(base.batch(batch_size))
if __name__ == '__main__': main()
""",
    "click named": """
import click
@click.command()
@click.option('--batch', 'n', default=32)
@click.option('--other', default=1)
def main(n, other): model.fit(base.batch(n))
main()
""",
    "click unused": """
import click
@click.command()
@click.option('-n', '--n', default=32)
def main(n): model.fit(base.batch(n))
""",
    "typer": """
import typer
def main(n: int = typer.Option(32)): model.fit(base.batch(n))
typer.run(main)
""",
    "typer keyword": """
import typer
app = typer.Typer()
@app.command()
def main(n: int = typer.Option(default=32, help='')): model.fit(base.batch(n))
app()
""",
    "os environ": """
import os
model.fit(base.batch(int(os.environ.get('N', 32))))
""",
    "os environ str": """
import os
model.fit(base.batch(int(os.environ.get('N', '32'))))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pipeline_is_followed(read: Read, name: str) -> None:
    program = read(PROGRAMS[name])

    assert ["from_tensor_slices", "batch"] in trained(program)
    assert 32 in sizes(program)


@pytest.mark.parametrize("name", ["argparse", "argparse fn", "absl", "os environ", "tf flags"])
def test_default_that_a_user_may_override_is_soft(read: Read, name: str) -> None:
    program = read(PROGRAMS[name])
    (stage,) = (stage for _, stage in program.pipelines[0].stages_of("batch"))
    size = stage.call.argument("batch_size")

    assert isinstance(size, Const) and size.soft


def test_constant_of_the_program_is_not_soft(read: Read) -> None:
    program = read(PROGRAMS["dict"])
    size = program.pipelines[0].stages[-1].call.argument("batch_size")

    assert isinstance(size, Const) and not size.soft


def test_environment_settings_are_noted(read: Read) -> None:
    program = read(
        """
import os
os.environ["A"] = "1"
os.environ.setdefault("B", "2")
os.environ.update({"C": "3"})
os.putenv("D", "4")
"""
    )

    assert [(setting.name, plain(setting.value)) for setting in program.settings] == [
        ("A", "1"),
        ("B", "2"),
        ("C", "3"),
        ("D", "4"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import click\n@click.command()\n@click.option('--n')\ndef main(n): model.fit(base.batch(n))\nmain()",
        "import hydra\n@hydra.main()\ndef main(cfg): model.fit(base.batch(cfg.n))\nmain()",
        "import json\ncfg = json.load(open('c'))\nmodel.fit(base.batch(cfg['n']))",
        "import yaml\ncfg = yaml.safe_load(open('c'))\nmodel.fit(base.batch(cfg['n']))",
        "import sys\nmodel.fit(base.batch(int(sys.argv[1])))",
        "import argparse as a\np=a.ArgumentParser()\np.add_argument('n')\nmodel.fit(base.batch(p.parse_args().n))",
    ],
)
def test_size_that_only_a_run_knows_is_unknown_but_the_pipeline_is_there(read: Read, text: str) -> None:
    program = read(text)

    assert trained(program) == [["from_tensor_slices", "batch"]]
    assert sizes(program) == [None]


def test_a_parser_behind_a_decorator_that_keeps_names(read: Read) -> None:
    text = """
import argparse, functools
parser = argparse.ArgumentParser()

def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner

@logged
def parse(args=None):
    return parser.parse_args(args)

parser.add_argument("--batch", type=int, default=48)
model.fit(base.batch(parse().batch))
"""
    (run,) = read(text).runs
    assert run.pipeline is not None
    assert run.pipeline.dataset.last.call.constant("batch_size") == 48
