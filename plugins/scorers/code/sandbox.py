"""Runs a program and its tests in this interpreter, once: the instance is thrown away afterwards.

The component has no files, no network, no processes and no clock, whatever a program tries. What is done here is to
make these things fail as an exception that the program could meet elsewhere, instead of by ending the component; and
to have the standard library in memory, because a component cannot load what it did not import when it was built.
"""

import ast
import builtins
import collections
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


def guard(names):
    """For `sys.addaudithook`: no files, sockets and processes, no tracing of the tests, and no changes to the functions
    and classes that a program did not define itself. `names` are the program's global variables."""

    # The two are values of parameters, which nothing can change afterwards: variables could be found and set.
    def refuse(event, arguments, names=names, known=frozenset(map(id, _classes()))):
        if event == "object.__setattr__":
            changed = arguments[0]
            # Only functions have global variables of their own; a module or class is its own, or was there before.
            foreign = getattr(changed, "__globals__", names) is not names
            if foreign or id(changed) in known or isinstance(changed, type(sys)):
                raise PermissionError("a program that is tested cannot change functions, classes and modules of Python")
        # What would let a program step over its tests, or find them in memory.
        elif event.startswith(("sys.settrace", "sys.setprofile", "sys.monitoring.", "gc.get_")) or (
            event == "open" or event.startswith(("os.", "socket.", "subprocess.", "shutil.", "tempfile.", "urllib.", "ctypes."))
        ):
            raise PermissionError(f"a program that is tested cannot use `{event}`")

    return refuse


def _classes():
    """Every class that there is."""
    found, waiting = set(), [object]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += type.__subclasses__(one)
    return found


def stand_still():
    """The clocks stand still, and what is random is the same in every run."""
    for name in ["time", "monotonic", "perf_counter", "process_time", "thread_time"]:
        setattr(time, name, lambda: 0.0)
        setattr(time, f"{name}_ns", lambda: 0)
    time.sleep = lambda _seconds: None
    seed = random.Random.seed
    random.Random.seed = lambda self, a=None, version=2: seed(self, 0 if a is None else a, version)
    random.seed(0)


# No name that a person writes: what the tests find under their own names of functions and modules of Python.
OWN = "\u02d0own_{}"


class Tests:
    """The statements that test a program. They run among the program's variables, where they find what it defines, but
    what Python itself brings they call by names that the program does not have: one that calls something `abs` does
    not change what the tests compare with.

    Raises `SyntaxError` or `ValueError` where the text is no program."""

    def __init__(self, text):
        tree = ast.parse(text, "<tests>")
        named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        defined = {node.id for node in named if not isinstance(node.ctx, ast.Load)}
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                defined.add(node.name)
            elif isinstance(node, ast.arg):
                defined.add(node.arg)
            elif isinstance(node, ast.alias):
                defined.add(node.asname or node.name.partition(".")[0])
            elif isinstance(node, ast.ExceptHandler) and node.name:
                defined.add(node.name)
        loaded = {node.id for node in named} - defined
        # Python's own, not those of this scorer.
        library = sys.stdlib_module_names & sys.modules.keys()
        self.modules = library & (loaded | defined)
        self.own = {name for name in loaded if hasattr(builtins, name) or name in library}
        # What is left is the program's to define. Tests that name nothing else test a function with such a name.
        self.others = loaded - self.own
        for node in named:
            if node.id in self.own:
                node.id = OWN.format(node.id)
        self.code = compile(tree, "<tests>", "exec", dont_inherit=True)

    def bind(self, names, brought):
        """Gives the tests what Python brings, once the program has run and left `names`."""
        tests_it = not self.others.intersection(names)
        for name in self.own.intersection({*names, *brought}):
            real = brought.get(name, sys.modules.get(name))
            mine = names.get(name, real)
            # `from datetime import datetime` is no other `datetime`.
            imported = name in sys.modules and getattr(sys.modules[name], name, None) is mine
            names[OWN.format(name)] = mine if tests_it or imported else real
        # Also what the tests import is imported by Python's own function.
        names["__builtins__"] = brought


def _restore_classes(members):
    """Puts back what a program changed in classes that it did not define."""
    for one, before in members:
        now = dict(vars(one))
        for name, value in before.items():
            if now.get(name) is not value:
                type.__setattr__(one, name, value)
        for name in now.keys() - before.keys():
            # Python keeps some values in a class when they are first asked for.
            if callable(now[name]):
                type.__delattr__(one, name)


def _steps(program, tests, names):
    """What is called in turn: the program, what puts back that it may have replaced, and its tests.

    Each step holds a function with its arguments, chosen before the program runs, so it does not matter what the
    program makes of `exec`, of this module or of the variables of the functions that called it."""
    run = functools.partial(exec, compile(program, "<answer>", "exec", dont_inherit=True), names)
    bind = functools.partial(tests.bind, names, dict(vars(builtins)))
    return run, *_put_back(tests), bind, functools.partial(exec, tests.code, names)


def _put_back(tests):
    """What restores Python's functions, the modules in memory, and the classes of those that the tests name."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, type(sys))]
    spaces = [vars(builtins), sys.modules, *map(vars, modules)]
    found = {one for name in tests.modules for one in vars(sys.modules[name]).values() if isinstance(one, type)}
    # A class that C defines cannot be changed.
    changeable = {one for each in found for one in each.__mro__ if one.__flags__ & 1 << 9}
    members = [(one, dict(vars(one))) for one in changeable]
    restored = [functools.partial(dict.update, space, dict(space)) for space in spaces]
    return *restored, functools.partial(_restore_classes, members)


def passes(program, tests):
    """Whether a program runs to its end, and its `Tests` after it.

    The two are compiled one by one, so that a program cannot swallow its tests in a text that it leaves open."""
    names = {}
    stand_still()
    # Nothing can be loaded, and nothing may be found that is part of this scorer.
    sys.path[:], sys.meta_path[:], sys.path_hooks[:] = [], sys.meta_path[:2], []
    for name in ["scorer", "sandbox", "candidate", "runner_plugin", "wit_world", "componentize_py_types"]:
        for loaded in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            del sys.modules[loaded]
    sys.stdin = sys.stdout = sys.stderr = Sink()
    warnings.simplefilter("ignore")
    put_back = _put_back(tests)
    sys.addaudithook(guard(names))
    try:
        # No variable holds the steps: a program finds and changes those of the functions that called it.
        collections.deque(map(operator.call, _steps(program, tests, names)), maxlen=0)
        passed = True
    except:  # noqa: E722: whatever `BaseException` now means. `exit()` too: a program that ends itself has not passed.
        passed = False
    # What judges goes on with Python as it was.
    for step in put_back:
        step()
    return passed
