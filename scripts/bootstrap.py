#!/usr/bin/env python3
"""Make .venv and install the course's pinned packages: what `make lab` and `make test` do first.

    python3 scripts/bootstrap.py          what a learner needs
    python3 scripts/bootstrap.py --dev    what the tests need as well

Standard library only, because nothing is installed yet. The syntax stays readable for Python 2.7 and 3.6 (so: no
f-strings, no annotations), because they must get far enough to say that they are too old.

The decisions are pure functions (`plan`, `explain_*`): they take what was found and return what to do or to say.
"""

import errno
import glob
import hashlib
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

SUPPORTED = ((3, 11), (3, 12), (3, 13))  # requires-python in pyproject.toml; a test compares
NEED_MB = 1500  # .venv with every extra is 0.9 GB, and pip unpacks its downloads (0.3 GB) beside it
LOG = ".venv-setup.log"
STAMP = os.path.join(".venv", "always-ends.json")
VENV_PYTHON = os.path.join(".venv", "bin", "python")
QUIET_LINE_SECONDS = 5.0  # without a terminal: often enough to see life, rare enough for a CI log


class SetupError(Exception):
    """What is wrong and what to type, in one sentence for the person at the keyboard."""


# ---- what to say: pure functions -------------------------------------------------------------------------------------


def dotted(version):
    return ".".join(str(part) for part in version)


def explain_version(version, usable, again):
    """The sentence for an unsupported Python, or None; `usable` are commands of supported ones, best first."""
    if tuple(version[:2]) in SUPPORTED:
        return None
    state = "too old" if tuple(version[:2]) < SUPPORTED[0] else "newer than this course has been tested with"
    start = "Python %s is %s (it needs 3.11, 3.12 or 3.13)" % (dotted(version[:2]), state)
    if usable:
        return "%s, but %s is here: type %s PYTHON=%s" % (start, usable[0], again, usable[0])
    return (
        "%s and no python3.13, python3.12 or python3.11 is on PATH: install one from your system's packages or "
        "from python.org, then type, for example, %s PYTHON=python3.12" % (start, again)
    )


def explain_no_venv(executable, version, system, debian, root, again):
    """The sentence for a Python that cannot make virtual environments."""
    start = "Python %s at %s cannot make a virtual environment because its ensurepip is missing: " % (
        dotted(version[:2]),
        executable,
    )
    if debian:
        package = "python%s-venv" % dotted(version[:2])
        sudo = "" if root else "sudo "
        return start + "type %sapt-get update && %sapt-get install -y %s and then %s" % (sudo, sudo, package, again)
    if system == "Darwin":
        return start + "type brew install python@3.13 and then %s PYTHON=python3.13" % again
    return start + (
        "install the part of Python that holds it (the package is often called python3-pip or python3-venv) "
        "and then type %s" % again
    )


def explain_disk(free_mb, where, again):
    """The sentence for a disk with too little room, or None."""
    if free_mb >= NEED_MB:
        return None
    return "The disk of %s has %d MB free and the set-up needs %d MB: free %d MB more, then type %s" % (
        where,
        free_mb,
        NEED_MB,
        NEED_MB - free_mb,
        again,
    )


def explain_full(where, again):
    return (
        "The disk became full (of %s, or of the temporary folder %s): free some room (the set-up needs %d MB), then "
        "type %s; what was downloaded is kept" % (where, tempfile.gettempdir(), NEED_MB, again)
    )


def explain_no_permission(path, root_folder, again):
    return (
        "No permission to write %s: type sudo chown -R \"$(id -un)\" '%s' (or clone the course into a folder of your "
        "own), then %s" % (path, root_folder, again)
    )


NO_SPACE = ("No space left on device", "Errno 28", "Disk quota exceeded", "Errno 122")
NO_TRUST = ("CERTIFICATE_VERIFY_FAILED", "SSLCertVerificationError", "certificate verify failed")
NO_NETWORK = (
    "NewConnectionError",
    "Failed to establish a new connection",
    "Failed to connect",
    "ConnectTimeoutError",
    "Connection refused",
    "Connection to ",
    "ConnectionResetError",
    "Connection aborted",
    "Connection broken",
    "IncompleteRead",
    "Max retries exceeded",
    "Name or service not known",
    "nodename nor servname",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "No route to host",
    "ProxyError",
    "ReadTimeoutError",
    "Read timed out",
    "RemoteDisconnected",
)
HEADINGS = ("subprocess-exited-with-error", "ResolutionImpossible", "Failed to build")
LAST_RETRY = "Retry(total=0"
FOUND_NOTHING = ("from versions: none", "No matching distribution found")


def explain_pip(lines, returncode, root_folder, again, task="pip could not install the packages"):
    """One sentence for a pip (or venv) that failed, from what it printed.

    A warning about the network counts only where pip gave up (its last retry, or no version found at all): after a
    retry that worked, the reason lies elsewhere.
    """
    text = "\n".join(lines)
    errors = [line.strip() for line in lines if line.strip().lower().startswith("error:")]
    error_text = "\n".join(errors)

    def has(markers, where):
        return any(marker in where for marker in markers)

    if has(NO_SPACE, text):
        return explain_full(root_folder, again)
    gave_up = has(FOUND_NOTHING, error_text) or LAST_RETRY in text
    if has(NO_TRUST, error_text) or (gave_up and has(NO_TRUST, text)):
        return (
            "The package index answered with a certificate that pip does not trust: on a network with a proxy of its "
            "own, type %s PIP_CERT=/path/to/its/certificate.pem; the full log is in %s" % (again, LOG)
        )
    if has(NO_NETWORK, error_text) or (gave_up and has(NO_NETWORK, text)):
        return (
            "No network: pip could not reach the package index; connect (behind a proxy: export HTTPS_PROXY=...) and "
            "type %s again; what was downloaded is kept, and the full log is in %s" % (again, LOG)
        )
    for line in errors:
        if "Permission denied" in line or "Errno 13" in line:
            path = line.rsplit("'", 2)[1] if line.count("'") >= 2 else ".venv"
            return explain_no_permission(path, root_folder, again)
    if returncode < 0:
        reason = "it was killed by signal %d" % -returncode
        reason += " (often: too little memory)" if returncode == -signal.SIGKILL else ""
    else:
        said = [line.strip() for line in lines if line.strip() and not line.startswith(("[notice]", "WARNING:"))]
        # pip closes with a heading that says nothing; the error before it is the reason.
        useful = [line[6:].strip() for line in errors if not any(heading in line for heading in HEADINGS)] or said
        reason = useful[-1] if useful else "it ended with code %d and said nothing" % returncode
    reason = reason.rstrip(".")
    return "%s: %s; the full log is in %s, and to try again, type %s" % (task, reason, LOG, again)


def explain_os_error(error, root_folder, again):
    """The sentence for an error of the operating system that was met on the way."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return explain_full(root_folder, again)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return explain_no_permission(error.filename or root_folder, root_folder, again)
    return "The set-up stopped: %s; put that right, then type %s" % (error, again)


# ---- what to do ------------------------------------------------------------------------------------------------------


def plan(found, wanted):
    """Decide from the state of .venv: ("ready" | "install" | "create", why).

    found: exists, version (of its python; None if that does not run), has_pip (a function: it costs 0.3 s), and stamp
    (a dict, {} if there is none). wanted: version, this_python, path, inputs, extras.
    """
    stamp, version = found["stamp"], found["version"]
    if not found["exists"]:
        return "create", ""
    if stamp.get("state") == "unfinished":
        return "create", "the last set-up was interrupted (what was downloaded is kept)"
    if version is None:
        return "create", "its Python is gone or does not run"
    if tuple(version[:2]) not in SUPPORTED:
        return "create", "its Python %s is not supported" % dotted(version[:2])
    if wanted["this_python"] and tuple(version[:2]) != tuple(wanted["version"][:2]):
        return "create", "it has Python %s and you asked for %s" % (dotted(version[:2]), dotted(wanted["version"][:2]))
    if stamp and stamp.get("path") != wanted["path"]:
        return "create", "the project was moved here from %s" % stamp.get("path")
    if stamp and stamp.get("version") != dotted(version[:2]):
        return "create", "its Python changed from %s to %s" % (stamp.get("version"), dotted(version[:2]))
    if stamp and stamp.get("inputs") == wanted["inputs"] and set(wanted["extras"]) <= set(stamp.get("extras", [])):
        return "ready", ""
    if not found["has_pip"]():
        return "create", "it has no pip"
    if not stamp:
        return "install", "it was not made by this set-up"
    if stamp.get("state") == "empty":
        return "install", "its packages are still missing"
    if stamp.get("inputs") != wanted["inputs"]:
        return "install", "pyproject.toml or constraints.txt changed"
    return "install", "more packages are wanted"


def fingerprint(root):
    """A hash of what decides which packages are installed.

    Only those tables of pyproject.toml that do: a new lint rule must not cost a learner an install.
    """
    import tomllib

    with open(os.path.join(root, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    with open(os.path.join(root, "constraints.txt"), "rb") as file:
        constraints = file.read()
    tables = [project.get("build-system"), project.get("project"), project.get("tool", {}).get("setuptools")]
    return hashlib.sha256(json.dumps(tables, sort_keys=True).encode() + constraints).hexdigest()


def child_environment():
    """The environment for pip and venv: the user's index and proxy settings stay, what breaks a venv goes."""
    environment = dict(os.environ)
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "__PYVENV_LAUNCHER__", "PIP_TARGET", "PIP_PREFIX"):
        environment.pop(name, None)
    environment.update(
        # For pip's isolated build of the project: an older pip reads the first name, a newer one the second. The path is
        # relative (pip runs in the project's folder), because pip splits these at spaces.
        PIP_CONSTRAINT=(os.environ.get("PIP_CONSTRAINT", "") + " constraints.txt").strip(),
        PIP_BUILD_CONSTRAINT="constraints.txt",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_NO_INPUT="1",
        PIP_ROOT_USER_ACTION="ignore",
        PIP_USER="0",  # a user's own `user = true` makes pip refuse to install into a venv
        PYTHONUNBUFFERED="1",  # else the progress arrives in lumps
        PYTHONIOENCODING="utf-8:backslashreplace",
    )
    return environment


def runs_supported(command):
    """True if this command starts a supported Python: a pyenv shim may be on PATH and still start nothing."""
    code = "import sys; sys.exit(0 if sys.version_info[:2] in %r else 1)" % (SUPPORTED,)
    try:
        with open(os.devnull, "w") as nowhere:
            return subprocess.call([command, "-I", "-c", code], stdout=nowhere, stderr=nowhere) == 0
    except OSError:
        return False


class Progress:
    """One updating line on a terminal, else a line every few seconds; `show` may be called as often as one likes."""

    def __init__(self, stream, clock):
        self.stream, self.clock = stream, clock
        self.started, self.last, self.live = clock(), clock(), stream.isatty()

    def show(self, text):
        now = self.clock()
        line = "  %3d s  %s" % (now - self.started, text)
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\033[K" + line[:width])
            self.stream.flush()
        elif now - self.last >= QUIET_LINE_SECONDS:
            self.last = now
            self.stream.write(line + "\n")
            self.stream.flush()

    def clear(self):
        if self.live:
            self.stream.write("\r\033[K")
            self.stream.flush()


class PipWatch:
    """Reads pip's lines and says in a few words where it is."""

    def __init__(self, installed):
        self.installed = installed  # a function: names of the packages in .venv now
        self.before = set(installed())
        self.collected, self.total, self.doing = set(), 0, "asking the package index"

    @property
    def installing(self):
        return self.total > 0

    def line(self, line):
        words = line.strip().split()
        if line.startswith("Collecting ") and len(words) > 1:
            name = words[1].split("=")[0].split("[")[0].split("<")[0].split(">")[0]
            self.collected.add(name)
            self.doing = "collecting %s" % name
        elif line.startswith("  Downloading ") and len(words) > 1:
            name = os.path.basename(words[1]).split("-")[0]
            self.doing = "downloading %s %s" % (name, " ".join(words[2:]))
        elif "WARNING: Retrying" in line:
            self.doing = "the package index does not answer, trying again"
        elif line.startswith("Installing collected packages:"):
            self.total = len(words) - 3

    def text(self):
        if not self.installing:
            return "%s (%d packages so far)" % (self.doing, len(self.collected))
        new = set(self.installed()) - self.before
        return "installing: %d of %d packages" % (min(len(new), self.total), self.total)


class Setup:
    """One run: where, for whom, and the steps that touch the disk."""

    def __init__(self, root, extras, this_python, out):
        self.root, self.extras, self.this_python, self.out = root, extras, this_python, out
        self.again = "make test" if "dev" in extras else "make lab"
        self.log_path = os.path.join(root, LOG)
        self.log = None

    def say(self, text):
        self.out.write(text + "\n")
        self.out.flush()

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def read_stamp(self):
        try:
            with open(self.path(STAMP)) as file:
                stamp = json.load(file)
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def write_stamp(self, stamp):
        with open(self.path(STAMP + ".new"), "w") as file:
            json.dump(stamp, file, indent=1)
        os.rename(self.path(STAMP + ".new"), self.path(STAMP))  # whole or not at all

    def mark(self, state, extras, version, inputs=None):
        """States: unfinished (something is being changed), empty (a venv without packages), complete."""
        version = dotted(version[:2])
        self.write_stamp({"state": state, "extras": extras, "path": self.root, "version": version, "inputs": inputs})

    def venv_output(self, *arguments):
        """What .venv's python prints for these arguments; None if it does not run."""
        try:
            process = subprocess.Popen(
                [self.path(VENV_PYTHON)] + list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
            )
        except OSError:
            return None
        output = process.communicate()[0].decode("utf-8", "replace")
        return output if process.returncode == 0 else None

    def find(self):
        exists = os.path.lexists(self.path(".venv"))
        is_venv = os.path.isfile(self.path(".venv", "pyvenv.cfg"))
        code = "import sys; print(*sys.version_info[:3])"
        said = (self.venv_output("-I", "-S", "-c", code) or "").split() if is_venv else []
        version = tuple(int(part) for part in said) or None
        return {
            "exists": exists,
            "version": version,
            "has_pip": lambda: self.venv_output("-I", "-m", "pip", "--version") is not None,
            "stamp": self.read_stamp() if exists else {},
        }

    def installed(self):
        pattern = os.path.join(glob.escape(self.root), ".venv", "lib", "python*", "site-packages", "*.dist-info")
        return [os.path.basename(folder) for folder in glob.glob(pattern)]

    def run(self):
        started = time.time()
        action, _, found = self.look()
        if action == "ready":
            self.say("Set-up: nothing to do, .venv has what it needs (Python %s)." % dotted(found["version"]))
            return
        self.open_log()
        action, why, found = self.look()  # whoever ran before us may have done it while we waited for the lock
        extras = sorted(set(self.extras) | set(found["stamp"].get("extras", [])))
        version = found["version"]
        if action == "create":
            problem = explain_disk(shutil.disk_usage(self.root).free // 2**20, self.root, self.again)
            if problem:
                raise SetupError(problem)
            self.create(why, extras)
            version = sys.version_info[:3]
        elif action == "install":
            self.say("Set-up: updating .venv, because %s." % why)
        if action != "ready":
            self.install(extras, version)
        took = (time.time() - started, dotted(version), len(self.installed()))
        self.say("Set-up: done in %d s, .venv holds Python %s and %d packages." % took)

    def look(self):
        found = self.find()
        wanted = {
            "version": sys.version_info[:2],
            "this_python": self.this_python,
            "path": self.root,
            "inputs": fingerprint(self.root),
            "extras": self.extras,
        }
        return plan(found, wanted) + (found,)

    def open_log(self):
        """Open the log, which is also the lock: two set-ups in one folder would ruin each other's .venv.

        pip inherits it, so that an orphaned pip (its bootstrap was killed) is waited for as well.
        """
        import fcntl

        self.log = open(self.log_path, "ab")  # noqa: SIM115 - it stays open: closing it would give up the lock
        os.set_inheritable(self.log.fileno(), True)
        try:
            fcntl.flock(self.log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.say("Set-up: another set-up is running in this folder; waiting for it to end.")
            fcntl.flock(self.log, fcntl.LOCK_EX)
        self.log.truncate(0)

    def create(self, why, extras):
        venv = self.path(".venv")
        if why:
            self.say("Set-up: making .venv anew, because %s." % why)
        if os.path.islink(venv) or os.path.isfile(venv):
            os.remove(venv)
        elif os.path.isdir(venv):
            known = [name for name in ("pyvenv.cfg", os.path.basename(STAMP), "bin") if name in os.listdir(venv)]
            if os.listdir(venv) and not known:
                raise SetupError(
                    "The folder .venv is no virtual environment and may be something of yours: type mv .venv venv-old, "
                    "then %s" % self.again
                )
            shutil.rmtree(venv)
        # The interpreter behind a venv, should this script run on the very .venv that was just removed.
        python = getattr(sys, "_base_executable", None) or sys.executable
        self.say("Set-up: making .venv with Python %s (%s)." % (dotted(sys.version_info[:3]), python))
        os.mkdir(venv)
        self.mark("unfinished", extras, sys.version_info)
        lines, returncode = self.follow([python, "-I", "-m", "venv", ".venv"], ignore, lambda: "making .venv")
        if returncode != 0:
            raise SetupError(explain_pip(lines, returncode, self.root, self.again, "%s could not make .venv" % python))
        self.mark("empty", extras, sys.version_info)

    def install(self, extras, version):
        """Run pip. The stamp says `unfinished` meanwhile, so that a killed pip leaves no half package behind."""
        before, inputs = self.read_stamp(), fingerprint(self.root)
        self.mark("unfinished", extras, version)
        self.say("Set-up: installing the pinned packages (the first time takes a minute or two; full log in %s)." % LOG)
        watch = PipWatch(self.installed)
        command = [VENV_PYTHON, "-m", "pip", "install", "--no-compile", "--progress-bar", "off"]
        command += ["-c", "constraints.txt", "-e", ".[%s]" % ",".join(extras)]
        lines, returncode = self.follow(command, watch.line, watch.text)
        if returncode != 0:
            if not watch.installing:  # pip stopped before it changed anything
                self.mark("empty", extras, version)
                if before.get("state") == "complete":
                    self.write_stamp(before)
            raise SetupError(explain_pip(lines, returncode, self.root, self.again))
        self.mark("complete", extras, version, inputs)
        # pip compiles on one core; this takes all of them (42 s in place of 68 s on two). A file that does not compile
        # is no failure: some packages carry templates.
        compile_all = [VENV_PYTHON, "-m", "compileall", "-q", "-j", "0", os.path.join(".venv", "lib")]
        self.follow(compile_all, ignore, lambda: "compiling, so that the first start is quick")

    def follow(self, command, on_line, text):
        """Run a command, its output into the log and to `on_line`; `text` says where it is, for the progress line."""
        progress = Progress(self.out, time.time)
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[self.log.fileno()],
        )
        lines, rest, descriptor = [], b"", process.stdout.fileno()
        try:
            while True:
                if select.select([descriptor], [], [], 0.2)[0]:
                    chunk = os.read(descriptor, 65536)
                    if not chunk:
                        break
                    self.log.write(chunk)
                    self.log.flush()
                    complete = (rest + chunk).split(b"\n")
                    rest = complete.pop()
                    for raw in complete:
                        lines.append(raw.decode("utf-8", "replace"))
                        on_line(lines[-1])
                progress.show(text())
            if rest:
                lines.append(rest.decode("utf-8", "replace"))
            return lines, process.wait()
        except BaseException:
            if process.poll() is None:
                process.terminate()
                process.wait()
            raise
        finally:
            progress.clear()
            process.stdout.close()


def ignore(line):
    pass


def on_debian():
    return os.path.exists("/etc/debian_version")


def check_python(root, arguments, this_python, again):
    """Leave with a sentence when this Python will not do; a .venv that works is used in its place."""
    candidates = ["python%s" % dotted(version) for version in reversed(SUPPORTED)]
    if tuple(sys.version_info[:2]) not in SUPPORTED:
        inside = os.path.join(root, VENV_PYTHON)
        if not this_python and runs_supported(inside):
            sys.stdout.flush()
            os.execv(inside, [inside, "-I", os.path.abspath(__file__)] + arguments)
        usable = [command for command in candidates if runs_supported(command)]
        raise SetupError(explain_version(sys.version_info, usable, again))
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        debian = on_debian() and sys.executable.startswith(("/usr/bin/", "/bin/"))
        raise SetupError(
            explain_no_venv(sys.executable, sys.version_info, platform.system(), debian, os.getuid() == 0, again)
        )


def interrupt(signum, frame):
    raise KeyboardInterrupt


def main(arguments):
    """Return the exit code: 0 ready, 1 with one sentence on stderr, 130 interrupted."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    extras = ["course", "dev"] if "--dev" in arguments else ["course"]
    this_python = "--this-python" in arguments
    again = "make test" if "--dev" in arguments else "make lab"
    unknown = [argument for argument in arguments if argument not in ("--dev", "--this-python")]
    if unknown:
        help_wanted = unknown[0] in ("-h", "--help")
        sys.stdout.write((__doc__ if help_wanted else "Unknown argument: %s; see --help" % unknown[0]) + "\n")
        return 0 if help_wanted else 2
    try:
        signal.signal(signal.SIGTERM, interrupt)
        check_python(root, arguments, this_python, again)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # a path may hold letters that the terminal's locale lacks
        os.chdir(root)
        Setup(root, extras, this_python, sys.stdout).run()
        return 0
    except SetupError as error:
        sentence, code = str(error), 1
    except KeyboardInterrupt:
        sentence, code = "Interrupted; what was downloaded is kept: type %s to go on" % again, 130
    except OSError as error:
        sentence, code = explain_os_error(error, root, again), 1
    except Exception as error:
        sentence, code = "The set-up has a fault of its own (%s: %s)" % (type(error).__name__, error), 1
        try:
            with open(os.path.join(root, LOG), "a") as file:
                traceback.print_exc(file=file)
            sentence += ": please report it with the end of %s" % LOG
        except OSError:
            pass
    sys.stdout.flush()
    sys.stderr.write(sentence + ".\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
