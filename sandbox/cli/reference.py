"""``course reference``: docs/reference.md, made from the commands themselves."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from sandbox.cli.common import load_course, shown

FILE = Path("docs/reference.md")


@click.command(hidden=True)
@click.option("--write", is_flag=True, help=f"Write {FILE} instead of printing it.")
@click.pass_context
def reference(ctx: click.Context, write: bool) -> int:
    """Print the reference of all commands, in Markdown.

    \b
    course reference --write
    """
    text = render(ctx.find_root().command)
    if not write:
        click.echo(text, nl=False)
        return 0
    from sandbox.learn import notebooks

    root = load_course().root
    notebooks.replace(root / FILE, text)
    click.echo(f"wrote {shown(root / FILE, root)}")
    return 0


def render(command: click.Command) -> str:
    """The reference as Markdown; the same for the same commands, whatever the terminal."""
    assert isinstance(command, click.Group)
    root = click.Context(command, info_name="course")
    lines = ["# The `course` command", "", "Made by `course reference --write`; a test compares. Do not edit.", ""]
    lines += [*_help(command), "| command | what it does |", "| --- | --- |"]
    shown_commands = [
        c for name in command.list_commands(root) if (c := command.get_command(root, name)) and not c.hidden
    ]
    lines += [f"| [`course {c.name}`](#course-{c.name}) | {_first_sentence(c)} |" for c in shown_commands]
    for each in shown_commands:
        lines += _section(each, root, "##")
    lines += ["", "Exit code: 0 when all is well, 1 when something failed, 2 for a mistake in what was typed.", ""]
    return "\n".join(lines)


def _section(command: click.Command, parent: click.Context, heading: str) -> list[str]:
    """One command, and below it those it has."""
    ctx = click.Context(command, info_name=command.name, parent=parent)
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    lines = ["", f"{heading} {ctx.command_path}", "", f"    {usage}", "", *_help(command)]
    records = [r for p in command.params if isinstance(p, click.Option) and (r := p.get_help_record(ctx))]
    if records:
        lines += ["| option | |", "| --- | --- |"]
        lines += [f"| `{_cell(names)}` | {_cell(text)} |" for names, text in records]
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            if (below := command.get_command(ctx, name)) and not below.hidden:
                lines += _section(below, ctx, f"{heading}#")
    return lines


def _help(command: click.Command) -> list[str]:
    """The help text; a paragraph that click is told to leave as it is becomes code."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        as_it_is, _, text = paragraph.rpartition("\b\n")
        lines += [f"    {line}" for line in text.splitlines()] if as_it_is or text != paragraph else text.splitlines()
        lines.append("")
    return lines


def _first_sentence(command: click.Command) -> str:
    first = " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
    return _cell(first.split(". ")[0].rstrip(".") + ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
