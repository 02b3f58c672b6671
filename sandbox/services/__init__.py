"""The private servers of a lesson: Redis, PostgreSQL and a Celery worker that end with their kernel."""

from sandbox.services.lab import Lab
from sandbox.services.submitted import SubmittedJob
from sandbox.services.table import Table
from sandbox.services.worker import Worker

__all__ = ["Lab", "SubmittedJob", "Table", "Worker"]
