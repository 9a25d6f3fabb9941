"""Runs a program and its tests in this interpreter, once: the instance is thrown away afterwards.

The component has no files, no network, no processes and no clock, whatever a program tries. This module's task is to
make these things fail as an exception that the program could meet elsewhere, instead of by ending the component; and to
have the standard library in memory, because a component can only load modules that its build imported.
"""

import ast
import builtins
import collections
import encodings
import functools
import gc
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
    """Imports the standard library as far as this interpreter has it; returns the names of missing modules."""
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
    """Discards all writes; there is nothing to read."""

    def writable(self):
        return True

    def write(self, text):
        return len(text)

    def read(self, *_):
        raise OSError("a program that is tested has no input")

    readline = readlines = read


def guard():
    """For `sys.addaudithook`: no files, sockets and processes, no tracing of the tests, and no changes to the functions,
    classes and modules that there were before the program."""
    # Names that would let a program step over its tests, watch them, or find them in memory.
    watching = ("sys.settrace", "sys.setprofile", "sys.monitoring.", "sys.addaudithook", "gc.get_")
    outside = ("os.", "socket.", "subprocess.", "shutil.", "tempfile.", "urllib.", "ctypes.")

    # All that it uses are values of parameters, which nothing can change afterwards: variables could be found and set.
    def refuse(
        event,
        arguments,
        known=frozenset(map(id, [*_classes(), *_functions_and_modules()])),
        barred=watching + outside,
        identity=id,
        error=PermissionError,
    ):
        if event == "object.__setattr__":
            if identity(arguments[0]) in known:
                raise error("a program that is tested cannot change functions, classes and modules of Python")
        elif event == "open" or event.startswith(barred):
            raise error(f"a program that is tested cannot use `{event}`")

    return refuse


def _functions_and_modules():
    return [one for one in gc.get_objects() if isinstance(one, (type(guard), type(sys)))]


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
    """Stops the clocks, and makes random numbers the same in every run."""
    for name in ["time", "monotonic", "perf_counter", "process_time", "thread_time"]:
        setattr(time, name, lambda: 0.0)
        setattr(time, f"{name}_ns", lambda: 0)
    time.sleep = lambda _seconds: None
    seed = random.Random.seed
    random.Random.seed = lambda self, a=None, version=2: seed(self, 0 if a is None else a, version)
    random.seed(0)


# No name that a person writes: the tests find functions and modules of Python under such names of their own.
OWN = "\u02d0own_{}"


class Tests:
    """The statements that test a program. They run among the program's variables and find its definitions, but call
    Python's own functions by names that the program lacks: a program that defines `abs` does not change the tests'
    comparisons.

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
        # Python's own modules, not this scorer's.
        library = sys.stdlib_module_names & sys.modules.keys()
        self.modules = library & (loaded | defined)
        self.own = {name for name in loaded if hasattr(builtins, name) or name in library}
        # The rest is the program's to define. Tests that name nothing else test a function with such a name.
        self.others = loaded - self.own
        for node in named:
            if node.id in self.own:
                node.id = OWN.format(node.id)
        self.code = compile(tree, "<tests>", "exec", dont_inherit=True)


def _bind(names, brought, library, own, others):
    """Gives the tests what Python brings, once the program has run and left `names`."""
    tests_it = not others.intersection(names)
    for name in own.intersection({*names, *brought}):
        real = brought.get(name, library.get(name))
        mine = names.get(name, real)
        # `from datetime import datetime` is no other `datetime`.
        imported = name in library and getattr(library[name], name, None) is mine
        names[OWN.format(name)] = mine if tests_it or imported else real
    # Python's own function also imports the tests' modules.
    names["__builtins__"] = brought


def _restore_classes(
    members, held, copy=dict, variables=vars, put=type.__setattr__, drop=type.__delattr__, is_function=callable
):
    """Puts back a program's changes in classes that it did not define."""
    for one, before in members:
        now = copy(variables(one))
        held.append(now)
        for name, value in before.items():
            if now.get(name) is not value:
                put(one, name, value)
        for name in now.keys() - before.keys():
            # Python stores some values in a class at their first use.
            if is_function(now[name]):
                drop(one, name)


def _restore_spaces(spaces, held, copy=dict, clear=dict.clear, update=dict.update):
    """Puts back the variables of modules. Like the above it uses none itself: this module's are among them."""
    for space, before in spaces:
        # A program's value there must not be deleted now: that may call it.
        held.append(copy(space))
        clear(space)
        update(space, before)


# The remains of programs. They are never deleted, because that may call a program.
HELD = []


def _put_back(tests, own):
    """The calls that restore Python's functions, the modules in memory, and the classes of the tests' modules and of
    this scorer's, `own`."""
    modules = [module for module in [*sys.modules.values(), *own] if isinstance(module, type(sys))]
    spaces = [(space, dict(space)) for space in (vars(builtins), sys.modules, *map(vars, modules))]
    judging = [*own, *map(sys.modules.get, tests.modules)]
    found = {one for module in judging for one in vars(module).values() if isinstance(one, type)}
    # A class that C defines cannot be changed.
    changeable = {one for each in found for one in each.__mro__ if one.__flags__ & 1 << 9}
    members = [(one, dict(vars(one))) for one in changeable]
    return (
        functools.partial(list.clear, gc.callbacks),
        functools.partial(_restore_classes, members, HELD),
        functools.partial(_restore_spaces, spaces, HELD),
    )


def _steps(program, tests, names, put_back):
    """The calls in order: the program, the restoration of its changes, and its tests.

    Each step holds a function with its arguments, chosen before the program runs, so the program's changes of `exec`,
    of this module or of its callers' variables have no effect."""
    run = functools.partial(exec, compile(program, "<answer>", "exec", dont_inherit=True), names)
    library = {name: sys.modules[name] for name in tests.modules}
    brought = dict(vars(builtins))
    bind = functools.partial(_bind, names, brought, library, frozenset(tests.own), frozenset(tests.others))
    # The garbage that the program left is not collected while the tests run, because that may call it.
    return run, gc.freeze, *put_back, bind, functools.partial(exec, tests.code, names)


def _attempt(steps):
    """True if all steps run to their end. The only item of `steps` makes them."""
    try:
        # No variable holds them: a program finds and changes the variables of the functions that called it.
        collections.deque(map(operator.call, steps.pop()()), maxlen=0)
        return True
    except:  # noqa: E722: whatever `BaseException` now means. `exit()` too: a program that ends itself has not passed.
        return False


def passes(program, tests):
    """True if a program runs to its end, and its `Tests` after it.

    The two are compiled one by one, so that a program cannot swallow its tests in a text that it leaves open."""
    stand_still()
    # Nothing can be loaded, and nothing may be found that is part of this scorer.
    sys.path[:], sys.meta_path[:], sys.path_hooks[:] = [], sys.meta_path[:2], []
    own = []
    for name in ["scorer", "sandbox", "candidate", "runner_plugin", "wit_world", "componentize_py_types"]:
        for loaded in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            own.append(sys.modules.pop(loaded))
    sys.stdin = sys.stdout = sys.stderr = Sink()
    warnings.simplefilter("ignore")
    passed, *_ = map(operator.call, _all(program, tests, own))
    return passed


def _all(program, tests, own):
    """The calls in order: the attempt, and the restoration of Python for this scorer, without a garbage collection that
    calls the program once more."""
    names = {}
    HELD.append(names)
    put_back = _put_back(tests, own)
    steps = functools.partial(_steps, program, tests, names, put_back)
    sys.addaudithook(guard())
    return functools.partial(_attempt, [steps]), gc.disable, *put_back
