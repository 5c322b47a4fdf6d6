"""`iodock doctor`: what this machine allows, and what follows."""

from __future__ import annotations

import sys

import click

from iodock.cli.options import examples, json_too, quiet


@click.command(epilog=examples(("iodock doctor", "iodock doctor --format json")))
@json_too
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", help="what to write")
@quiet
def command(form: str, quiet: bool) -> int:
    """Say what this machine allows (ptrace, perf, BPF, kernel, file systems) and what follows from it. Exit
    status 1 if programs can't be recorded here."""
    from iodock.program.doctor import examine

    findings = examine()
    if form == "json":
        import json

        json.dump([finding.as_dict() for finding in findings], sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        width = max(len(finding.topic) for finding in findings)
        for finding in findings:
            click.echo(f"{finding.mark:<4}  {finding.topic:<{width}}  {finding.found}")
            if finding.follows:
                click.echo(f"{'':<4}  {'':<{width}}  {finding.follows}")
    return 0 if all(finding.state != "blocked" for finding in findings) else 1
