"""Discovery: what a run looks at, with git and without."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tflint_gpu.config import Settings
from tflint_gpu.errors import UserError
from tflint_gpu.source import discover, discovery, find_requirement_files
from tflint_gpu.source.globs import Globs
from tflint_gpu.source.texts import Error

Tree = Callable[..., Path]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Make a folder of files the current one; texts by path, "" where only the path matters."""

    def make(*paths: str, **texts: str) -> Path:
        for path in paths:
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(texts.get(file.name.replace(".", "_").strip("_"), ""))
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return make


def git(*arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True
    )


def names(*paths: str, **settings: object) -> list[str]:
    return [file.path for file in discover(paths or (".",), Settings(**settings))]  # type: ignore[arg-type]


@pytest.fixture(params=["walk", "git"])
def lister(request: pytest.FixtureRequest) -> Callable[[], None]:
    """Make the folder a repository, or leave it: both must list the same."""
    return (lambda: git("init", "-q")) if request.param == "git" else lambda: None


def test_lists_python_and_notebooks_sorted(tree: Tree, lister: Callable[[], None]) -> None:
    tree("b.py", "a.ipynb", "sub/c.py", "data.csv", "stub.pyi", "README.md")
    lister()
    assert names() == ["a.ipynb", "b.py", "sub/c.py"]


def test_honours_ignore_files_nearest_last(tree: Tree, lister: Callable[[], None]) -> None:
    root = tree(".gitignore", "a.py", "gen/b.py", "sub/.gitignore", "sub/x.py", "sub/keep_me.py")
    (root / ".gitignore").write_text("gen/\nkeep_*.py\n")
    (root / "sub/.gitignore").write_text("x.py\n!keep_me.py\n")
    lister()
    assert names() == ["a.py", "sub/keep_me.py"]


def test_leaves_out_what_is_not_the_projects_own(tree: Tree, lister: Callable[[], None]) -> None:
    tree("a.py", ".venv/x.py", "node_modules/m/x.py", "build/lib/x.py", "p/site-packages/x.py", ".tox/x.py")
    tree(".ipynb_checkpoints/a-checkpoint.ipynb")
    lister()
    assert names() == ["a.py"]


def test_excludes_are_gitignore_patterns_relative_to_where_they_stand(
    tree: Tree, lister: Callable[[], None]
) -> None:
    root = tree("a.py", "old/a.py", "sub/old/a.py", "sub/b_test.py")
    lister()
    assert names(exclude=(Globs(root, ("/old", "*_test.py")),)) == ["a.py", "sub/old/a.py"]
    assert names(exclude=(Globs(root / "sub", ("/old",)),)) == ["a.py", "old/a.py", "sub/b_test.py"]


def test_tracked_files_count_even_if_ignored_and_deleted_ones_do_not(tree: Tree) -> None:
    root = tree("kept.py", "gone.py", "untracked.py", "new folder/an ünusual näme.py")
    git("init", "-q")
    git("add", "kept.py", "gone.py")
    (root / ".gitignore").write_text("kept.py\nuntracked.py\n")
    (root / "gone.py").unlink()
    assert names() == ["kept.py", "new folder/an ünusual näme.py"]


def test_a_repository_inside_is_listed_by_its_own_rules(tree: Tree) -> None:
    root = tree("a.py", "vendored/b.py", "vendored/c.py")
    git("init", "-q")
    git("init", "-q", "vendored")
    (root / "vendored/.gitignore").write_text("c.py\n")
    assert names() == ["a.py", "vendored/b.py"]


def test_an_ignored_folder_that_is_named_is_checked(tree: Tree) -> None:
    root = tree("a.py", "out/b.py", "empty/notes.txt")
    git("init", "-q")
    (root / ".gitignore").write_text("out/\n")
    assert names() == ["a.py"]
    assert names("out") == ["out/b.py"]
    assert names("empty") == []


def test_the_index_of_a_running_hook_is_not_asked(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree("a.py")
    git("init", "-q")
    monkeypatch.setenv("GIT_DIR", str(root / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / "elsewhere/index"))
    assert names() == ["a.py"]


def test_without_git_on_the_path_the_tree_is_walked(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree("a.py", "b.py")
    (root / ".gitignore").write_text("b.py\n")
    git("init", "-q")
    monkeypatch.setenv("PATH", str(root))
    assert names() == ["a.py"]


def test_named_files_are_taken_as_they_are(tree: Tree) -> None:
    root = tree("script", "build/x.py", "a.py")
    (root / ".gitignore").write_text("a.py\n")
    assert names("script", "build/x.py", "a.py", "./a.py") == ["a.py", "build/x.py", "script"]
    assert all(file.explicit for file in discover(["script"], Settings()))


def test_a_hook_can_force_excludes_on_named_files(tree: Tree) -> None:
    root = tree("build/x.py", "gen/y.py", "a b.py")
    found = names("build/x.py", "gen/y.py", "a b.py", force_exclude=True, exclude=(Globs(root, ("gen/",)),))
    assert found == ["a b.py"]


def test_paths_are_told_from_the_current_folder(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree("a.py", "sub/b.py")
    monkeypatch.chdir(root / "sub")
    assert names("..") == ["../a.py", "b.py"]
    assert names(str(root / "sub")) == ["b.py"]


def test_a_missing_path_is_told(tree: Tree) -> None:
    tree()
    with pytest.raises(UserError, match=r"nowhere\.py: no such file"):
        names("nowhere.py")


def test_what_never_ends_is_refused_by_name_and_left_out_of_folders(
    tree: Tree, lister: Callable[[], None]
) -> None:
    root = tree("train.py")
    lister()
    os.mkfifo(root / "pipe.py")
    os.mkfifo(root / ".gitignore")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind("socket.py")
        assert names() == ["train.py"]
        for name in ("pipe.py", "socket.py", os.devnull):
            with pytest.raises(UserError, match=rf"^{name}: a pipe, socket or device"):
                names(name)


def test_links_do_not_double_files_nor_lead_in_circles(tree: Tree, lister: Callable[[], None]) -> None:
    root = tree("a.py", "sub/b.py")
    (root / "link.py").symlink_to(root / "a.py")
    (root / "sub/loop").symlink_to(root)
    (root / "dangling.py").symlink_to(root / "gone.py")
    (root / "itself.py").symlink_to("itself.py")
    (root / "sub/there.ipynb").symlink_to("back.ipynb")
    (root / "sub/back.ipynb").symlink_to("there.ipynb")
    lister()
    assert names() == ["a.py", "sub/b.py"]


def test_a_virtual_environment_of_any_name_is_left_out(tree: Tree) -> None:
    tree("a.py", "myenv/pyvenv.cfg", "myenv/lib/x.py")
    assert names() == ["a.py"]


def test_requirement_files_nearest_first_up_to_the_repository(tree: Tree) -> None:
    root = tree(
        "pyproject.toml", "top/requirements.txt", "top/requirements/gpu.txt", "top/sub/requirements-dev.in",
        "top/sub/Pipfile", "top/notes.txt", "top/sub/train.py",
    )  # fmt: skip
    git("init", "-q", "top")
    found = [path.relative_to(root.resolve()).as_posix() for path in find_requirement_files(root / "top/sub")]
    assert found == [
        "top/sub/Pipfile",
        "top/sub/requirements-dev.in",
        "top/requirements.txt",
        "top/requirements/gpu.txt",
    ]


def test_requirement_files_outside_a_repository_stop_at_the_current_folder(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree("setup.py", "here/setup.cfg", "here/sub/environment.yml")
    monkeypatch.chdir(root / "here")
    found = [path.name for path in find_requirement_files(root / "here/sub")]
    assert found == ["environment.yml", "setup.cfg"]
    assert [path.name for path in find_requirement_files(root)] == ["setup.py"]


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Refuse to list a folder, as its mode does to all but root."""

    def lock(folder: Path) -> None:
        listing = os.scandir

        def scandir(path: object) -> object:
            if Path(str(path)) == folder:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return listing(str(path))

        monkeypatch.setattr(os, "scandir", scandir)

    return lock


def test_a_folder_that_cannot_be_listed_is_an_error(tree: Tree, locked: Callable[[Path], None]) -> None:
    root = tree("a.py", "sub/b.py")
    locked(root / "sub")
    errors: list[Error] = []
    assert [file.path for file in discover(["."], Settings(), errors)] == ["a.py"]
    (error,) = errors
    assert (error.path, error.fatal) == ("sub", True)
    assert "Permission denied" in error.message and "exclude it" in error.message


def test_an_excluded_folder_may_be_closed(tree: Tree, locked: Callable[[Path], None]) -> None:
    root = tree("a.py", "sub/deep/b.py")
    locked(root / "sub")
    errors: list[Error] = []
    discover(["."], Settings(exclude=(Globs(root, ("sub/",)),)), errors)
    assert errors == []


def test_what_git_cannot_list_is_an_error(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree("a.py", "sub/b.py")
    git("init", "-q")
    git("add", "a.py")
    said = b"warning: could not open directory 'sub/': Permission denied\n"
    listing = discovery._Listing(b"a.py\0", said)
    monkeypatch.setattr(discovery, "_git", lambda folder, *arguments: listing)
    errors: list[Error] = []
    assert [file.path for file in discover(["."], Settings(), errors)] == ["a.py"]
    assert [(error.path, "Permission denied" in error.message) for error in errors] == [("sub", True)]
