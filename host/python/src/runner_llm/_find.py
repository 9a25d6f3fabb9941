"""Finds the program: the file `runner`, which the distribution installs beside this module."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Iterator

#: The variable with the program's file; it precedes every installation.
VARIABLE = "RUNNER_BINARY"


class RunnerNotFound(FileNotFoundError):
    """The program was not found; the message names every searched place."""


def find_runner() -> str:
    """The path of the program.

    The variable `RUNNER_BINARY` names the file. Without it, the function looks in this order:

    - this Python's scripts, and the scripts of a virtual environment's base Python;
    - the `bin` folder of the prefix or the target folder of this package;
    - the user's scripts, and the `PATH`.

    Raises:
        RunnerNotFound: If no place has the program.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named) if os.path.basename(named) == named else named
        if path is not None and _is_program(path):
            return path
        raise RunnerNotFound(
            f"{VARIABLE} names `{named}`, which is no program; name the file of `runner`, "
            "or unset the variable"
        )
    name = "runner.exe" if os.name == "nt" else "runner"
    looked: list[str] = []
    for about, folder in _folders():
        path = os.path.join(folder, name)
        if path not in looked and _is_program(path):
            return path
        looked.append(f"{path} ({about})")
    on_path = shutil.which(name)
    if on_path is not None:
        return on_path
    places = "".join(f"\n  {place}" for place in dict.fromkeys(looked))
    raise RunnerNotFound(
        f"no program `{name}`; install the distribution `runner-llm` as a wheel, build the program "
        f"and name its file in {VARIABLE}, or put it on the PATH. Looked at:{places}\n"
        f"  the folders of PATH: {os.environ.get('PATH', '')}"
    )


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _folders() -> Iterator[tuple[str, str]]:
    yield "scripts of this Python", sysconfig.get_path("scripts")
    base = sysconfig.get_path("scripts", vars={"base": sys.base_prefix})
    yield "scripts of the Python below it", base
    package = Path(__file__).resolve().parent
    installed = package.parent
    # `pip install --prefix` and the like: PREFIX/lib/python3.x/site-packages, or PREFIX/Lib/….
    parents = installed.parents
    if installed.name in ("site-packages", "dist-packages") and len(parents) > 2:
        levels = 1 if os.name == "nt" else 2
        scripts = "Scripts" if os.name == "nt" else "bin"
        yield "the prefix of this package", str(parents[levels] / scripts)
    # `pip install --target`: the scripts are in `bin` beside the package.
    yield "beside this package", str(installed / "bin")
    yield "the user's scripts", sysconfig.get_path("scripts", _user_scheme())


def _user_scheme() -> str:
    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    if os.name == "nt":
        return "nt_user"
    if sys.platform == "darwin" and sys._framework:  # type: ignore[attr-defined,unused-ignore]
        return "osx_framework_user"
    return "posix_user"
