"""Runs a program and its tests in this interpreter, once: the instance is thrown away afterwards.

The component has no files, no network, no processes and no clock, whatever a program tries. What is done here is to
make these things fail as an exception that the program could meet elsewhere, instead of by ending the component; and
to have the standard library in memory, because a component cannot load what it did not import when it was built.
"""

import builtins
import collections
import contextlib
import encodings
import functools
import importlib
import io
import operator
import pkgutil
import random
import sys
import time
import warnings

# Modules that open windows or browsers, print when they are imported, or are tests.
LEFT_OUT = ("_pyrepl", "_test", "_xx", "antigravity", "idlelib", "this", "tkinter", "turtle", "test", "webbrowser")
PARTS = (
    "collections.abc concurrent.futures email.message email.mime.text html.entities html.parser http.client "
    "importlib.util json.decoder json.tool logging.handlers os.path unittest.mock urllib.error urllib.parse urllib.request "
    "xml.dom.minidom xml.etree.ElementTree"
).split()


def _library():
    """Imports what this interpreter has of the standard library; returns the names of what it lacks."""
    # Private ones too: `_strptime` is loaded when it is first needed.
    modules = [name for name in sorted(sys.stdlib_module_names) if not name.startswith(LEFT_OUT)]
    codecs = [f"encodings.{module.name}" for module in pkgutil.iter_modules(encodings.__path__)]
    lacking = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [*modules, *PARTS, *codecs]:
            try:
                importlib.import_module(name)
            except (ImportError, OSError, AttributeError):
                lacking.append(name)
    return lacking


LACKING = _library()


class Sink(io.TextIOBase):
    """Takes what is written and keeps nothing; there is nothing to read."""

    def writable(self):
        return True

    def write(self, text):
        return len(text)

    def read(self, *_):
        raise OSError("a program that is tested has no input")

    readline = readlines = read


# What would let a program step over its tests, or find them in memory.
TAMPERING = ("sys.settrace", "sys.setprofile", "sys.monitoring.", "gc.get_")


def refuse(event, arguments):
    """For `sys.addaudithook`: no files, sockets and processes, and no tracing of the tests."""
    if event.startswith(TAMPERING) or (event == "object.__setattr__" and arguments[0] is refuse):
        raise PermissionError(f"a program that is tested cannot use `{event}`")
    if event == "open" or event.startswith(("os.", "socket.", "subprocess.", "shutil.", "tempfile.", "urllib.", "ctypes.")):
        raise PermissionError(f"a program that is tested cannot use `{event}`")


def stand_still():
    """The clocks stand still, and what is random is the same in every run."""
    for name in ["time", "monotonic", "perf_counter", "process_time", "thread_time"]:
        setattr(time, name, lambda: 0.0)
        setattr(time, f"{name}_ns", lambda: 0)
    time.sleep = lambda _seconds: None
    seed = random.Random.seed
    random.Random.seed = lambda self, a=None, version=2: seed(self, 0 if a is None else a, version)
    random.seed(0)


def _used(code):
    """The modules that tests name, in a function too."""
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    names = set(code.co_names).union(*(_used(one) for one in inner))
    return {name for name in names if name in sys.modules}


def _steps(program, tests, names):
    """What is called in turn: the program, what puts back that it may have replaced, and its tests.

    Each step holds a function of the interpreter's own with its arguments, chosen before the program runs, so it does
    not matter what the program makes of `exec`, of this module or of the variables of the functions that called it."""
    spaces = [vars(builtins), *(vars(sys.modules[name]) for name in sorted(_used(tests)))]
    put_back = [functools.partial(dict.update, space, dict(space)) for space in spaces]
    run = functools.partial(exec, compile(program, "<answer>", "exec", dont_inherit=True), names)
    return run, *put_back, functools.partial(exec, tests, names)


def passes(program, tests):
    """Whether a program runs to its end, and its compiled tests after it.

    The two are compiled one by one, so that a program cannot swallow its tests in a text that it leaves open."""
    names = {}
    nothing = Sink()
    stand_still()
    # Nothing can be loaded, and nothing may be found that is part of this scorer.
    sys.path[:], sys.meta_path[:], sys.path_hooks[:] = [], sys.meta_path[:2], []
    for name in ["scorer", "sandbox", "candidate", "runner_plugin", "wit_world", "componentize_py_types"]:
        for loaded in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            del sys.modules[loaded]
    sys.stdin = nothing
    sys.addaudithook(refuse)
    with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # No variable holds the steps: a program finds and changes those of the functions that called it.
            collections.deque(map(operator.call, _steps(program, tests, names)), maxlen=0)
        except BaseException:
            # Also `exit()`: a program that ends itself has not passed.
            return False
    return True
