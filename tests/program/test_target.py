"""The versions that a program is meant for, and where they are learnt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.program.conftest import Read
from tflint_gpu.config import Settings
from tflint_gpu.program import target
from tflint_gpu.program.requirements import read_requirements
from tflint_gpu.program.target import NEWEST, Target, find_target, newest_of

TRAIN = "import tensorflow as tf\n"


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_installed", lambda package: None)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("requirements.txt", "tensorflow==2.10.1\n", (2, 10)),
        ("requirements.txt", "numpy\ntensorflow-gpu>=2.4,<2.8  # old\n", (2, 7)),
        ("requirements.txt", "tensorflow[and-cuda]~=2.14.0; python_version > '3.8'\n", (2, 14)),
        ("requirements.txt", "tensorflow>=2.4\n", NEWEST[0]),
        ("requirements.txt", "tensorflow-cpu==2.9.*\n", (2, 9)),
        ("requirements-dev.txt", "tensorflow==2.12.0\n", (2, 12)),
        ("requirements/base.txt", "tensorflow==2.12.0\n", (2, 12)),
        ("pyproject.toml", '[project]\ndependencies = [\n  "tensorflow>=2.9,<2.12",\n]\n', (2, 11)),
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "tensorflow==2.6.0"]\n', (2, 6)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "2.8.0"\n', (2, 8)),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntensorflow = {version = "~2.8", extras = ["x"]}\n',
            (2, 8),
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "^2.3"\n', NEWEST[0]),
        ("setup.cfg", "[options]\ninstall_requires =\n    tensorflow>=2.5,<2.7\n", (2, 6)),
        ("setup.py", "setup(install_requires=['numpy', 'tensorflow<2.6'])\n", (2, 5)),
        ("Pipfile", '[packages]\ntensorflow = "==2.11.0"\n', (2, 11)),
        ("poetry.lock", '[[package]]\nname = "tensorflow"\nversion = "2.13.1"\n', (2, 13)),
        ("uv.lock", '[[package]]\nname = "tensorflow"\nversion = "2.17.0"\n', (2, 17)),
        ("environment.yml", "dependencies:\n  - python=3.9\n  - tensorflow=2.10\n", (2, 10)),
        ("environment.yml", "dependencies:\n  - pip:\n    - tensorflow==2.6.2\n", (2, 6)),
        ("requirements.txt", "tensorflow[and-cuda]==2.15.*\n", (2, 15)),
        ("requirements.txt", "tensorflow-macos==2.9.2\n", (2, 9)),
        ("requirements.txt", "tensorflow-intel==2.11.0\n", (2, 11)),
        ("requirements.txt", "tensorflow-rocm==2.12.0.560\n", (2, 12)),
        ("requirements.txt", "tensorflow-cpu-aws~=2.13.0\n", (2, 13)),
        ("requirements.txt", "tf-nightly==2.16.0.dev20231010\n", (2, 16)),
        ("requirements.txt", "tf_nightly_gpu==2.6.0.dev20210501\n", (2, 6)),
        ("requirements.txt", "tensorflow===2.6.0\n", (2, 6)),
        ("requirements.txt", "tensorflow (==2.6.0)\n", (2, 6)),
        ("requirements.txt", "TensorFlow == 2.6.0\n", (2, 6)),
        ("requirements.txt", "tensorflow>=2.4,<2.8,!=2.7.*\n", (2, 6)),
        ("requirements.txt", "tensorflow==2.8.0 --hash=sha256:0af1\n", (2, 8)),
        ("requirements.txt", "tensorflow==2.8.0 \\\n    --hash=sha256:0af1 \\\n    --hash=sha256:9c\n", (2, 8)),
        (
            "requirements.txt",
            "tensorflow @ https://h.example/w/tensorflow-2.9.1-cp39-cp39-linux_x86_64.whl\n",
            (2, 9),
        ),
        (
            "requirements.txt",
            "tensorflow-macos==2.9.2; sys_platform == 'darwin'\ntensorflow==2.12.0; sys_platform == 'linux'\n",
            (2, 12),
        ),
        (
            "requirements.txt",
            "tensorflow==2.10.0; platform_system == 'Windows'\ntensorflow==2.15.0; platform_system != 'Windows'\n",
            (2, 15),
        ),
        ("requirements.txt", "tensorflow==2.10.0; sys_platform == 'win32'\n", (2, 10)),
        ("requirements.in", "tensorflow<2.12\n", (2, 11)),
        ("constraints.txt", "tensorflow==2.6.0\n", (2, 6)),
        ("requirements_gpu.txt", "tensorflow-gpu==2.3.4\n", (2, 3)),
        (
            "pyproject.toml",
            '[project.optional-dependencies]\ngpu = ["tensorflow[and-cuda]>=2.14,<2.16"]\n',
            (2, 15),
        ),
        ("pyproject.toml", '[dependency-groups]\ntrain = ["tensorflow~=2.12.0"]\n', (2, 12)),
        ("pyproject.toml", "[project]\ndependencies = [\"tensorflow==2.10; sys_platform == 'linux'\"]\n", (2, 10)),
        ("pyproject.toml", '[tool.poetry.group.gpu.dependencies]\ntensorflow = ">=2.10,<2.12"\n', (2, 11)),
        ("pyproject.toml", '[tool.poetry.dependencies.tensorflow]\nversion = "2.8.*"\nextras = ["x"]\n', (2, 8)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "^2.8,<2.10"\n', (2, 9)),
        ("setup.py", "setup(extras_require={'gpu': ['tensorflow-gpu>=2.2,<2.4']})\n", (2, 3)),
        ("setup.py", "REQUIRED = [\n    'numpy',\n    'tensorflow>=2.3,<2.5',\n]\n", (2, 4)),
        ("setup.cfg", "[options.extras_require]\ngpu = tensorflow-gpu==2.5.0\n", (2, 5)),
        ("Pipfile", '[packages]\ntensorflow = {version = "==2.11.0", extras = ["and-cuda"]}\n', (2, 11)),
        (
            "Pipfile.lock",
            '{"default": {\n "tensorflow": {\n  "hashes": ["sha256:0a"],\n  "version": "==2.11.0"\n }}}\n',
            (2, 11),
        ),
        ("pdm.lock", '[[package]]\nname = "tensorflow"\nversion = "2.13.1"\n', (2, 13)),
        ("pylock.toml", '[[packages]]\nname = "tensorflow"\nversion = "2.18.0"\n', (2, 18)),
        ("uv.lock", '[[package]]\nname = "tensorflow-macos"\nversion = "2.16.2"\n', (2, 16)),
        ("environment.yml", "dependencies:\n  - tensorflow-gpu=2.4.1=h8236f22_0\n", (2, 4)),
        ("environment.yml", "dependencies:\n  - conda-forge::tensorflow=2.10.0\n", (2, 10)),
        ("environment.yml", "dependencies:\n  - tensorflow 2.9.*\n", (2, 9)),
        ("environment.yml", 'dependencies:\n  - "tensorflow>=2.6,<2.8"\n', (2, 7)),
        ("environment.yml", "dependencies: [python=3.8, tensorflow=2.4, numpy]\n", (2, 4)),
        ("environment-gpu.yml", "dependencies:\n  - tensorflow=2.9\n", (2, 9)),
        ("conda-lock.yml", "package:\n- name: tensorflow\n  version: 2.10.0\n", (2, 10)),
    ],
)
def test_version_of_a_requirement_file(read: Read, file: str, text: str, version: tuple[int, int]) -> None:
    found = read({"train.py": TRAIN, file: text}, tensorflow=None, head=False).target

    assert found.tensorflow == version
    assert found.source == file


@pytest.mark.parametrize(
    "text",
    [
        "tensorflow\n",
        "tensorflow-datasets==4.0\n",
        "# tensorflow==2.4\n",
        "tensorflow==nonsense\n",
        "\x00\xff\n",
        "",
    ],
)
def test_file_that_says_nothing_leaves_the_newest(read: Read, text: str) -> None:
    found = read({"train.py": TRAIN, "requirements.txt": text}, tensorflow=None, head=False).target

    assert (found.tensorflow, found.source) == (NEWEST[0], "newest known")


@pytest.mark.parametrize(
    ("files", "version", "source"),
    [
        ({"pyproject.toml": 'dependencies = ["tensorflow>=2.4"]\n', "uv.lock": "LOCK"}, (2, 17), "uv.lock"),
        (
            {"requirements-dev.txt": "tensorflow==2.4\n", "requirements.txt": "tensorflow==2.9\n"},
            (2, 9),
            "requirements.txt",
        ),
        (
            {"requirements-ci.txt": "tensorflow==2.4\n", "requirements-latest.txt": "tensorflow==2.9\n"},
            (2, 9),
            "requirements-latest.txt",
        ),
        (
            {"requirements.apple.txt": "tensorflow-macos==2.9\n", "requirements.txt": "tensorflow==2.15\n"},
            (2, 15),
            "requirements.txt",
        ),
        (
            {"requirements-gpu.txt": "tensorflow-gpu==2.4\n", "requirements.txt": "tensorflow==2.15\n"},
            (2, 4),
            "requirements-gpu.txt",
        ),
        ({"environment.yml": "  - tensorflow\n", "setup.py": "['tensorflow==2.5']\n"}, (2, 5), "setup.py"),
        ({"requirements.txt": "-r deps/tf.txt\n", "deps/tf.txt": "tensorflow==2.6\n"}, (2, 6), "deps/tf.txt"),
        ({"requirements.txt": "-c pins.txt\ntensorflow\n", "pins.txt": "tensorflow==2.7\n"}, (2, 7), "pins.txt"),
        ({"requirements.txt": "-r requirements.txt\ntensorflow==2.7\n"}, (2, 7), "requirements.txt"),
        ({"requirements.txt": "-r /etc/hosts\n-r missing.txt\ntensorflow==2.7\n"}, (2, 7), "requirements.txt"),
    ],
)
def test_which_file_has_the_word(read: Read, files: dict[str, str], version: tuple[int, int], source: str) -> None:
    lock = '[[package]]\nname = "tensorflow"\nversion = "2.17.0"\n'
    texts = {name: lock if text == "LOCK" else text for name, text in files.items()}
    found = read({"train.py": TRAIN, **texts}, tensorflow=None, head=False).target

    assert (found.tensorflow, found.source) == (version, source)


def test_setting_wins(read: Read) -> None:
    program = read({"train.py": TRAIN, "requirements.txt": "tensorflow==2.4.0\n"}, tensorflow="2.15", head=False)

    assert (program.target.tensorflow, program.target.source) == ((2, 15), "setting")
    assert program.target.legacy_keras
    assert [requirement.name for requirement in program.requirements] == ["tensorflow"]


def test_installed_version_comes_after_the_files(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_installed", {"tensorflow": (2, 9), "keras": (2, 9)}.get)
    found = read({"train.py": TRAIN}, tensorflow=None, head=False).target

    assert (found.tensorflow, found.source) == ((2, 9), "installed")


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ('import os\nos.environ["KERAS_BACKEND"] = "jax"\nimport keras\n', "jax"),
        ("import os\nos.environ.setdefault('KERAS_BACKEND', 'torch')\nimport keras\n", "torch"),
        ("import keras\nkeras.config.set_backend('torch')\n", "torch"),
        ('# os.environ["KERAS_BACKEND"] = "jax"\nimport keras\n', "tensorflow"),
        ("# keras.config.set_backend('torch')\nimport keras\n", "tensorflow"),
        ("import keras\n", "tensorflow"),
    ],
)
def test_backend(read: Read, text: str, backend: str) -> None:
    found = read({"train.py": text}, head=False).target

    assert found.backend == backend
    assert found.on_tensorflow is (backend == "tensorflow")


@pytest.mark.parametrize(
    "magic", ["%env KERAS_BACKEND=jax", "%env KERAS_BACKEND jax", "%set_env KERAS_BACKEND=jax"]
)
def test_backend_by_a_magic(read: Read, magic: str) -> None:
    cells: list[str] = [f"{magic}\nimport keras\n", "x = 1\n"]

    assert read({"train.ipynb": cells}, head=False).target.backend == "jax"


@pytest.mark.parametrize(
    ("stated", "backend"),
    [
        ('{"backend": "jax"}', "jax"),
        ('{"floatx": "float32"}', "tensorflow"),
        ("{", "tensorflow"),
        ("[]", "tensorflow"),
    ],
)
def test_backend_of_this_machine(read: Read, tmp_path: Path, stated: str, backend: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/keras.json").write_text(stated)

    assert read({"train.py": "import keras\n"}, head=False).target.backend == backend
    assert read({"train.py": "import keras\n"}, tensorflow="2.10", head=False).target.backend == "tensorflow"


def test_backend_by_setting(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    settings = Settings(tensorflow="2.21", keras_backend="torch")

    assert find_target((), {}, settings)[0].backend == "torch"
    assert find_target((), {}, Settings(tensorflow="2.21"))[0].backend == "jax"


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport tensorflow as tf\n",
        "import tensorflow as tf\nimport tf_keras as keras\n",
        "import tensorflow as tf\nfrom tf_keras import layers\n",
    ],
)
def test_legacy_keras_by_its_own_word(read: Read, text: str) -> None:
    assert read({"train.py": text}, tensorflow="2.18", head=False).target.legacy_keras


def test_what_versions_can_do() -> None:
    assert not Target((2, 10)).injects_prefetch and Target((2, 11)).injects_prefetch
    assert not Target((2, 4)).parallelises_maps and Target((2, 5)).parallelises_maps


def test_newest_of_a_range() -> None:
    known = [(2, 4), (2, 5), (2, 6)]

    assert newest_of(">=2.4,!=2.6.*", known) == (2, 5)
    assert newest_of("", known) == (2, 6)
    assert newest_of(">3", known) is None
    assert newest_of("not a version", known) is None


def test_program_for_tensorflow_1_is_left_alone(read: Read) -> None:
    program = read(
        {"train.py": TRAIN + "tf.data.Dataset.range(3).batch(1)\n", "requirements.txt": "tensorflow==1.15\n"},
        tensorflow=None,
        head=False,
    )

    assert not program.calls


def test_requirement_lines_know_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "requirements.txt"
    file.write_text("numpy\n  tensorflow==2.10.1 ; python_version > '3'\nKeras==2.10\n")
    tensorflow, keras = read_requirements(file)

    assert (tensorflow.location.path, tensorflow.location.line, tensorflow.location.column) == (
        "requirements.txt",
        2,
        3,
    )
    assert tensorflow.marker == "python_version > '3'"
    assert (keras.name, keras.specifier) == ("keras", "==2.10")
    assert read_requirements(tmp_path / "missing.txt") == []
