"""Worker files: the files in a lab's work folder that the kernel and the worker both import.

Loaded by content: when any of them has changed since it was imported, all are imported anew at the next use. So an
edit is seen by a worker that is running, and one file may import another.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import inspect
import keyword
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from sandbox.errors import BadWorkerFile, NotSendable, WorkerFileGone

_loaded: dict[str, str] = {}  # path -> digest of the text that was imported
_folders: set[Path] = set()  # the work folders that anything was loaded from


def check_name(name: str, folder: Path) -> Path:
    """The path of worker file `name`; raises BadWorkerFile for a name that could not be imported, or not safely."""
    name = name.removesuffix(".py")
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise BadWorkerFile(
            f"{name!r} is not a module name: use letters, digits and _, for example `%%worker_file imports`."
        )
    path = folder / f"{name}.py"
    if _is_taken(name, folder):
        raise BadWorkerFile(f"a module named {name!r} exists already and yours would hide it: choose another name.")
    return path


def _is_taken(name: str, folder: Path) -> bool:
    if name in sys.builtin_module_names or hasattr(builtins, name):
        return True
    module = sys.modules.get(name)
    if module is not None and getattr(module, "__file__", None):
        return Path(str(module.__file__)).parent != folder
    spec = getattr(module, "__spec__", None) or importlib.util.find_spec(name)
    if spec is None or spec.origin is not None:
        return spec is not None and Path(str(spec.origin)).parent != folder
    # Any folder in reach is a module to Python. One that was installed is; one beside the notebook is just a folder.
    installed = ("site-packages", "dist-packages")
    return any(part in installed for place in spec.submodule_search_locations or [] for part in Path(place).parts)


def write(name: str, text: str, folder: Path) -> Path:
    """Write worker file `name`; an unchanged text leaves the file as it is."""
    path = check_name(name, folder)
    data = text.encode()
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)
    return path


def load(path: Path) -> ModuleType:
    """Import the worker file `path` as it is now; raises what importing it raises."""
    folder = path.parent
    _folders.add(folder)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    digests = {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.py")}
    # Also one that was imported without us, as a worker's `include` is: nobody knows what it was made from.
    if any(digests.get(file) != _loaded.get(file) for file in _imported_from(folder)):
        forget(folder)
    importlib.invalidate_caches()
    linecache.checkcache()
    module = sys.modules.get(path.stem)
    if module is not None and getattr(module, "__file__", None) == str(path):
        return module
    # Two edits within one second can have the same size and time, which is all that a .pyc is judged by.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        module = importlib.import_module(path.stem)
    except BaseException:
        forget(folder)
        raise
    finally:
        sys.dont_write_bytecode = before
    for file in _imported_from(folder):
        _loaded[file] = digests.get(file, "")
    return module


def file_of(function: Any) -> Path:
    """The worker file in which `function` is defined, at its top level. Raises NotSendable, with what to do.

    By the file its code came from, not by the module that is imported now: editing one file drops all modules of its
    folder until they are next used, and the functions of the others are as good as before.
    """
    inner = inspect.unwrap(function) if callable(function) else None
    if inspect.isfunction(inner) and inner.__qualname__ == inner.__name__ and inner.__name__.isidentifier():
        file = Path(inner.__code__.co_filename)
        if file.parent in _folders and file.is_file():
            return file
        if file.parent in _folders:
            raise WorkerFileGone(
                f"the worker file of {inner.__name__}, {file.name}, is gone: its lab was closed, or the file removed. Open the "
                "lab, run the cell that begins with `%%worker_file` again, then this one."
            )
    name = getattr(function, "__name__", None) or repr(function)
    raise NotSendable(
        f"{name} is not a function of a worker file, so the worker can not import it. Define it at the top level of a cell "
        "that begins with `%%worker_file NAME`, run that cell, then hand over the function's name without brackets."
    )


def _imported_from(folder: Path) -> dict[str, str]:
    """The modules that came from `folder`: file and name."""
    files = {getattr(module, "__file__", None): name for name, module in list(sys.modules.items())}
    return {file: name for file, name in files.items() if isinstance(file, str) and Path(file).parent == folder}


def forget(folder: Path) -> None:
    """Drop every module that came from `folder`, so that it is imported anew."""
    for file, name in _imported_from(folder).items():
        del sys.modules[name]
        _loaded.pop(file, None)
    for kept in (folder / "__pycache__").glob("*.pyc"):
        kept.unlink(missing_ok=True)
