"""Runs a learner's code where it can do no harm, and reports what it did."""

from sandbox.grade.runner import Call, Outcome, Reply, Submission, run_cases

__all__ = ["Call", "Outcome", "Reply", "Submission", "run_cases"]
