"""nbgrader's settings, read by every `nbgrader` command that is typed in this folder.

nbgrader generate_assignment 03_swallowed_signal      the exercise, and its entry in the gradebook
nbgrader autograde 03_swallowed_signal                what lies in build/submitted/NAME/03_swallowed_signal
nbgrader generate_feedback 03_swallowed_signal
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader runs this file with the name defined)
root = Path(__file__).resolve().parent
build = root / "build"
build.mkdir(exist_ok=True)

c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
# Everything that grading makes is nobody's source, so it stays out of git.
c.CourseDirectory.submitted_directory = "build/submitted"
c.CourseDirectory.autograded_directory = "build/autograded"
c.CourseDirectory.feedback_directory = "build/feedback"
c.CourseDirectory.solution_directory = "build/solution"
c.CourseDirectory.source_with_tests_directory = "build/source_with_tests"
c.CourseDirectory.db_url = f"sqlite:///{build / 'gradebook.db'}"

# A learner who deletes a locked test cell would lose its points without a word; so it is put back before grading.
c.OverwriteCells.add_missing_cells = True
# A task's limits are seconds and a worker starts within two; a cell that takes a minute is in an endless loop.
c.Execute.timeout = 60
c.GenerateAssignment.post_convert_hook = "sandbox.learn.releasing.tidy_release"

# nbgrader calls alembic by its bare name when it makes a gradebook.
bin_folder = str(Path(sys.executable).parent)
if bin_folder not in os.environ.get("PATH", "").split(os.pathsep):
    os.environ["PATH"] = os.pathsep.join([bin_folder, *filter(None, [os.environ.get("PATH")])])
