"""``tflint-gpu clean``: remove what was kept between runs."""

from __future__ import annotations

from pathlib import Path

import click

from tflint_gpu.cli.options import FilePath
from tflint_gpu.config import find_config
from tflint_gpu.lint.cache import FOLDER, clean


@click.command(name="clean", short_help="Remove what check keeps between runs.")
@click.option("--cache-dir", type=FilePath(), metavar="FOLDER", help="The cache, where it has a place of its own.")
def command(cache_dir: str | None) -> int:
    """Remove the cache of this folder, and that of the project it belongs to.

    Evidence in .tflint-gpu stays: it took a run to make.
    """
    here = Path.cwd()
    found = None if cache_dir else find_config(here)
    folders = [Path(cache_dir)] if cache_dir else [here / FOLDER, *([found[0].parent / FOLDER] if found else [])]
    removed = [folder for folder in dict.fromkeys(folders) if clean(folder)]
    for folder in removed:
        click.echo(f"note: removed {folder}", err=True)
    if not removed:
        click.echo("note: there is no cache to remove", err=True)
    return 0
