"""Background work that always ends: the toolkit and the classroom of the course."""

__version__ = "0.1.0"
