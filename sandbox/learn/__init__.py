"""What a notebook of the course uses: checks, hints, timelines, and the magic that makes a worker file of a cell."""

from sandbox.learn import magic
from sandbox.learn.checking import check, grade, hint
from sandbox.learn.checks.batch import Batch
from sandbox.learn.checks.rows import Planted
from sandbox.learn.timeline import timeline

magic.register()

__all__ = ["Batch", "Planted", "check", "grade", "hint", "timeline"]
