"""Runs a learner's code where it can do no harm, and reports what it did."""

from sandbox.grade.runner import Call, Outcome, Reply, Submission, one_child, run_cases, start_spare

__all__ = ["Call", "Outcome", "Reply", "Submission", "one_child", "run_cases", "start_spare"]
