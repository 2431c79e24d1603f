"""``tflint-gpu rules``: the catalogue as a table, or as JSON."""

from __future__ import annotations

import click


@click.command(name="rules", short_help="List the rules.")
@click.option("--output-format", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(output_format: str) -> None:
    """List every rule with its code, how loud it is, what it is judged by, and whether it can be fixed."""
    from tflint_gpu.checks.catalogue import all_pages

    pages = all_pages()
    if output_format == "json":
        import json

        rows = [
            {
                "code": page.code,
                "name": page.name,
                "factor": page.factor,
                "severity": str(page.severity),
                "phases": list(page.phases),
                "fix": page.fix,
                "since": page.since,
                "summary": page.summary,
                "options": page.options,
                "references": list(page.references),
                "plugin": page.plugin or None,
            }
            for page in pages
        ]
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    from tabulate import tabulate

    table = [
        (page.code, page.name, page.factor, str(page.severity), " + ".join(page.phases), page.fix)
        for page in pages
    ]
    click.echo(tabulate(table, ("code", "rule", "factor", "severity", "judged by", "fix"), tablefmt="simple"))
