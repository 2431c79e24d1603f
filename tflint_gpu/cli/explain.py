"""``tflint-gpu explain``: a rule's page."""

from __future__ import annotations

import click


@click.command(name="explain", short_help="Print the page of a rule.")
@click.argument("rule")
def command(rule: str) -> None:
    """Print the page of RULE, a code such as TFG101 or a name such as missing-prefetch."""
    from tflint_gpu.checks.catalogue import all_pages, find_page
    from tflint_gpu.config_keys import nearest
    from tflint_gpu.errors import UserError

    page = find_page(rule)
    if page is None:
        pages = all_pages()
        known = [*(p.name for p in pages), *(p.code for p in pages)]
        raise UserError(f"no rule {rule!r}{nearest(rule, known) or '; see `tflint-gpu rules`'}")
    click.echo(page.text(), nl=False)
