"""One notebook, run by papermill in a process of its own; ``running`` starts it and reads what it reports.

Run as ``python -m sandbox.learn.run_one FD`` with the order as one line of JSON on stdin. Reports are lines of JSON on
the file descriptor FD, because a kernel inherits stdout and may print anything there. When stdin closes, whoever
started this is gone, and so is the kernel a moment later.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

TAG = "course-check"

# Nothing is imported that the notebook did not import: a notebook without a lab has run no job.
_SUMMARY = """\
def _course_check():
    import json, sys
    lab = sys.modules.get("sandbox.services.lab")
    print({marker!r} + json.dumps(lab.Lab.summary() if lab else {{}}))
_course_check()
del _course_check
"""


class Reports:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, **report: Any) -> None:
        os.write(self._descriptor, json.dumps(report).encode() + b"\n")


def kill_kernels() -> None:
    """SIGKILL the kernels of this process. A lab's servers end by themselves when their kernel has."""
    import psutil

    for child in psutil.Process().children():
        try:
            child.kill()
        except psutil.Error:
            continue


def _watch_stdin() -> None:
    while os.read(0, 1 << 12):
        pass
    kill_kernels()
    os._exit(1)


def run(order: dict[str, Any], reports: Reports) -> dict[str, Any]:
    """Run the notebook; returns ``{"jobs": {state: count}}`` or ``{"error": text}``."""
    import papermill
    from nbclient.exceptions import DeadKernelError
    from nbformat.v4 import new_code_cell
    from papermill.engines import NBClientEngine, papermill_engines

    from sandbox.learn import notebooks

    path = Path(order["path"])
    notebook = notebooks.read(path)
    marker = f"course-check {os.urandom(8).hex()} "
    last = new_code_cell(_SUMMARY.format(marker=marker))
    last.metadata["tags"] = [TAG]
    # The count of a cell that comes last can not shift the others, and papermill writes the copy, not the notebook.
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.cells.append(last)

    class Engine(NBClientEngine):
        """papermill's own engine, which says which cell it is at."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
            start, seen = nb_man.cell_start, [0]

            def cell_start(cell: Any, cell_index: int | None = None, **rest: Any) -> Any:
                if cell.cell_type == "code":
                    seen[0] += 1
                    reports.send(cell=seen[0], source=cell.source[:2000], ours=TAG in cell.metadata.get("tags", []))
                return start(cell, cell_index, **rest)

            nb_man.cell_start = cell_start
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    papermill_engines.register("course", Engine)
    kept = order["output"]
    try:
        papermill.execute_notebook(
            notebook,
            kept.replace("{", "{{").replace("}", "}}"),  # papermill formats it
            parameters=order["parameters"] or None,
            engine_name="course",
            kernel_name=None,
            progress_bar=False,
            cwd=str(path.parent),
            start_timeout=60,
        )
    except papermill.PapermillExecutionError:
        pass  # judged below, because papermill does not know the tag raises-exception
    except DeadKernelError:
        return {"error": "the kernel died"}
    done = notebooks.read(Path(kept))
    jobs = None
    for cell in done.cells:
        if cell.cell_type != "code":
            continue
        ours = TAG in notebooks.tags(cell)
        for output in cell.outputs:
            if output.output_type == "error" and "raises-exception" not in notebooks.tags(cell):
                return _failure(cell, output, ours)
            if ours and output.output_type == "stream" and marker in output.text:
                jobs = json.loads(output.text.split(marker, 1)[1].splitlines()[0])
    if jobs is None:
        return {"error": "the notebook ended before its last cell"}
    return {"jobs": jobs}


def _failure(cell: Any, output: Any, ours: bool) -> dict[str, Any]:
    text = f"{output.ename}: {output.evalue}"
    if ours:
        return {"error": f"the job table could not be read when the notebook was over: {text}"}
    return {"error": text, "source": cell.source, "traceback": "\n".join(output.get("traceback", []))}


def main() -> None:
    reports = Reports(int(sys.argv[1]))
    first = b""
    while not first.endswith(b"\n"):
        data = os.read(0, 1)
        if not data:
            return
        first += data
    threading.Thread(target=_watch_stdin, daemon=True).start()
    try:
        result = run(json.loads(first), reports)
    except Exception as error:
        import traceback

        traceback.print_exc()
        message = str(error).strip() or "no message"
        ours = type(error).__module__ == "sandbox.errors"
        result = {"error": message if ours else f"{type(error).__name__}: {message}"}
    reports.send(done=result)


if __name__ == "__main__":
    main()
