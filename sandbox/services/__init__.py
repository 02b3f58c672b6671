"""The private servers of a lesson: Redis, PostgreSQL and a Celery worker that end with their kernel."""

from sandbox.services.lab import Lab, SubmittedJob, Worker
from sandbox.services.table import Table

__all__ = ["Lab", "SubmittedJob", "Table", "Worker"]
