"""Every error this package raises on purpose.

::

    SandboxError
    ├── BadSetting            a value a person typed, or an environment variable, that can not work
    │   └── BadDeadline       a timeout that is no number of seconds, a moment without a timezone
    ├── MissingProgram        Redis or PostgreSQL is nowhere to be found
    ├── StackFailed           a server or the worker did not come up, or went away
    ├── PoolIgnoresLimits     a worker pool on which time limits do nothing
    ├── NotConfined           a Redis command that would reach beyond this lab's keys
    ├── NoLabOpen             a helper needs an open lab and there is none
    ├── BadWorkerFile         the name or the text of a worker file can not be used
    ├── NotSendable           a function or an argument that can not travel to a worker
    │   └── WorkerFileGone    a function whose worker file is no longer there
    ├── WaitedInVain          the caller's own patience ended before the job did
    ├── JobNotFound           no job row has this id
    ├── IllegalTransition     a state change that the job's life does not have
    ├── BadNotebook           a notebook or course.toml that can not be read
    └── GraderFailed          our grading broke, which is never the learner's fault

Each message says what is wrong and what to type.
"""

from __future__ import annotations


class SandboxError(Exception):
    """Base of every error raised on purpose by this package."""


class BadSetting(SandboxError, ValueError):
    """A setting has a value that can not work."""


class BadDeadline(BadSetting):
    """A time limit that limits nothing: no number of seconds, or a time of day in nobody's timezone."""


class MissingProgram(SandboxError):
    """A server program was found in none of the places searched."""


class StackFailed(SandboxError):
    """A server or the worker did not start, or died; the message ends with the tail of its log."""


class PoolIgnoresLimits(SandboxError):
    """Only the prefork pool enforces both time limits; another one was asked for."""


class NotConfined(SandboxError):
    """On a shared Redis this command could read or change keys of others."""


class NoLabOpen(SandboxError):
    """Open a lab first."""


class BadWorkerFile(SandboxError):
    """The file a worker should import has a name or text that can not be used."""


class NotSendable(SandboxError, TypeError):
    """Only functions of a worker file and JSON values travel to a worker."""


class WorkerFileGone(NotSendable):
    """The worker file of a function is gone: its lab was closed, or the file was removed."""


class WaitedInVain(SandboxError, TimeoutError):
    """``wait`` gave up. The job was not stopped by that: a client's patience is no limit."""


class JobNotFound(SandboxError, LookupError):
    """No job row has this id."""


class IllegalTransition(SandboxError):
    """The two states named in the message have no transition between them."""


class BadNotebook(SandboxError):
    """A notebook or ``course.toml`` is missing, or is not what it should be."""


class GraderFailed(SandboxError):
    """The grader itself failed; the verdict is "inconclusive", not a mark."""
