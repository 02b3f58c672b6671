"""The checkers. A checker is a plain function that gets what the learner made: it returns, or raises NotYet."""
