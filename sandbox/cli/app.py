"""The tree of commands. Each is imported here, so none of them may import anything slow at its top."""

from __future__ import annotations

import click

from sandbox import __version__
from sandbox.cli.check import check
from sandbox.cli.doctor import doctor
from sandbox.cli.lab import lab
from sandbox.cli.links import links, minutes
from sandbox.cli.notebooks import clean, exercises, reset, solutions
from sandbox.cli.progress import progress
from sandbox.cli.reference import reference
from sandbox.cli.stack import down, status, up


class InOrder(click.Group):
    """Lists its commands in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="course")
def course() -> None:
    """Background work that always ends: a course on Celery, Redis and PostgreSQL.

    \b
    course lab            open the course
    course check 03       run lesson 03 and its solution, as CI does
    course doctor         find out what this machine lacks
    """


for _command in (
    lab,
    progress,
    check,
    doctor,
    reset,
    up,
    down,
    status,
    clean,
    exercises,
    solutions,
    links,
    minutes,
    reference,
):
    course.add_command(_command)
