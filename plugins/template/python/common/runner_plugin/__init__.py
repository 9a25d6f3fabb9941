"""Support for every kind of plugin: its description, its configuration, errors and log lines.

This package is yours: it came with the project, and you may change it. Import at the top of a module whatever you need,
also of the standard library: the component is a snapshot of the interpreter after it has imported your module, and it
has no files, no network and no environment. Its clock stands still at 0, and the random numbers of `random` and
`os.urandom` follow from the run's seed. Your `print` lines go to the log.
"""

import builtins
import dataclasses
import json
import re
import sys

from componentize_py_types import Err
from wit_world.exports import about
from wit_world.imports import log, types


def invalid_config(message):
    """An error to raise if the user's configuration is wrong. Name the key, the expected value and the remedy."""
    return Err(types.Error_InvalidConfig(well_formed(message)))


def invalid_input(message):
    """An error to raise if an input file is wrong. Name the place in the file and the expected value."""
    return Err(types.Error_InvalidInput(well_formed(message)))


def protocol(message):
    """An error to raise if the server sent something that this plugin does not understand."""
    return Err(types.Error_Protocol(well_formed(message)))


def other(message):
    """An error to raise for anything else."""
    return Err(types.Error_Other(well_formed(message)))


def note(message):
    """Writes a line to the run's log, for the person who runs the benchmark."""
    log.write(log.Level.INFO, well_formed(message))


def warn(message):
    """Writes a warning to the run's log."""
    log.write(log.Level.WARN, well_formed(message))


def _failed(kind, error, trace):
    """Logs in one line the exception that ends a call. The whole traceback follows in the log."""
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        # The innermost line of the author's own, where there is one: an error inside `json` is rarely `json`'s fault.
        if not place or (code.co_filename.startswith(OWN) and not code.co_filename.startswith(OWN + "runner_plugin/")):
            place = f" at {code.co_name}, {code.co_filename.removeprefix(OWN)} line {trace.tb_lineno}"
        trace = trace.tb_next
    try:
        message = str(error)
    except Exception:
        message = ""
    if issubclass(kind, ModuleNotFoundError):
        message += " (import modules at the top of a file: the component is a snapshot taken after that)"
    log.write(log.Level.ERROR, well_formed(f"{kind.__name__}{': ' * bool(message)}{message}{place}"))
    sys.__excepthook__(kind, error, trace)


class _Exit(BaseException):
    """In place of `SystemExit`, which would shut the interpreter down before it could say why."""

    def __init__(self, code=None):
        super().__init__("a plugin must return a result or raise an error")
        self.code = code


def _exit(code=None):
    raise _Exit(code)


OWN = "/0/"
"""The project's folder, in the names of files."""

_Exit.__name__ = _Exit.__qualname__ = "SystemExit"
builtins.SystemExit = _Exit
sys.exit = _exit
sys.excepthook = _failed


def well_formed(text):
    """The text as the host accepts it: unpaired surrogates, as JSON can spell them in "\\ud83d", are replaced."""
    return text if text.isascii() else HALVES.sub("\ufffd", text)


HALVES = re.compile("[\ud800-\udfff]")


def parsed(data):
    """The JSON value in bytes from elsewhere.

    Raises `ValueError` where they hold none, also where it is nested deeper than 64 levels: the parser calls itself
    for each, and a reply of brackets alone would exhaust the stack, which ends the plugin."""
    if data.count(b"[") + data.count(b"{") > 64 and _depth(data) > 64:
        raise ValueError("nested too deeply")
    return json.loads(data)


BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def _depth(data):
    depth = deepest = 0
    for match in BRACKETS.finditer(data):
        if match[0] in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in b"]}":
            depth -= 1
    return deepest


def option(default, description):
    """A field of a configuration class: its default and its description."""
    factory = dataclasses.MISSING
    if isinstance(default, (list, dict)):
        default, factory = dataclasses.MISSING, lambda value=default: value.copy()
    return dataclasses.field(default=default, default_factory=factory, metadata={"description": description})


def plate(name, version, summary, config):
    """The class `About` that every plugin exports. `config` is the dataclass of the user's settings."""
    info = about.Info(name, version, summary, json.dumps(schema(config)))

    class About:
        def describe(self):
            return info

    return About


JSON_TYPES = {
    str: ("string", "a string"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
    list[str]: ("array", "a list of strings"),
    dict: ("object", "a table"),
}


def schema(config):
    """The JSON Schema of a configuration class, whose fields have the types `str`, `bool`, `int`, `float`,
    `list[str]` or `dict`, or one of these `| None`."""
    properties = {}
    for field in dataclasses.fields(config):
        kind = JSON_TYPES[_type(field)][0]
        properties[_key(field)] = {
            "description": field.metadata.get("description", ""),
            "type": [kind, "null"] if _default(field) is None else kind,
            **({"items": {"type": "string"}} if kind == "array" else {}),
            "default": _default(field),
        }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def configured(config, text):
    """The user's configuration, a JSON object, as an instance of the class; all mistakes are reported at once.
    A key is the field's name with `-` for `_`."""
    given = json.loads(text)
    fields = {_key(field): field for field in dataclasses.fields(config)}
    mistakes = []
    values = {}
    for key, value in given.items():
        field = fields.get(key)
        if field is None:
            known = ", ".join(f"`{name}`" for name in sorted(fields)) or "none"
            mistakes.append(f"key `{key}`: there is no such key; known: {known}")
        elif not _fits(value, field):
            mistakes.append(f"key `{key}`: expected {JSON_TYPES[_type(field)][1]}, found {json.dumps(value)}")
        else:
            values[field.name] = float(value) if _type(field) is float and value is not None else value
    if mistakes:
        raise invalid_config(well_formed("; ".join(mistakes)))
    return config(**values)


def _key(field):
    return field.name.replace("_", "-")


def _type(field):
    """The field's type without `| None`."""
    if field.type in JSON_TYPES:
        return field.type
    return next(kind for kind in field.type.__args__ if kind in JSON_TYPES)


def _default(field):
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _fits(value, field):
    kind = _type(field)
    if value is None:
        return _default(field) is None
    if kind is list[str]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
