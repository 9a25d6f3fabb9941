"""The program is found wherever an installer may have put it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import runner_llm
from runner_llm import _find


def program(folder: Path) -> Path:
    """A program in a folder, which prints its place and its arguments."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "runner"
    file.write_text('#!/bin/sh\necho "$0" "$@"\nexit 7\n')
    file.chmod(0o755)
    return file


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without the program."""
    monkeypatch.delenv("RUNNER_BINARY", raising=False)
    empty = tmp_path / "empty"

    def get_path(name: str, scheme: str = "", vars: Any = None) -> str:
        if vars:
            return str(Path(vars["base"]) / "bin")
        return str(empty / "user" / "bin") if scheme else str(empty / "scripts")

    monkeypatch.setattr(sysconfig, "get_path", get_path)
    monkeypatch.setattr(sys, "base_prefix", str(empty / "base"))
    monkeypatch.setenv("PATH", str(empty / "path"))
    return empty


def installed(site: Path) -> Any:
    """The module that finds the program, as if it were installed in this folder."""
    package = site / "runner_llm"
    package.mkdir(parents=True)
    file = shutil.copy(_find.__file__, package)
    spec = importlib.util.spec_from_file_location("installed_find", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_variable_comes_first(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(nowhere / "scripts")
    named = program(nowhere / "named")
    monkeypatch.setenv("RUNNER_BINARY", str(named))
    assert runner_llm.find_runner() == str(named)
    monkeypatch.setenv("RUNNER_BINARY", str(nowhere / "nothing"))
    with pytest.raises(runner_llm.RunnerNotFound, match="RUNNER_BINARY names .*nothing"):
        runner_llm.find_runner()


def test_each_place_in_its_order(nowhere: Path) -> None:
    site = nowhere / "prefix" / "lib" / "python3.11" / "site-packages"
    find = installed(site)
    places = [
        nowhere / "path",
        nowhere / "user" / "bin",
        site / "bin",
        nowhere / "prefix" / "bin",
        nowhere / "base" / "bin",
        nowhere / "scripts",
    ]
    # From the last place to the first: each new place precedes the earlier ones.
    for place in places:
        expected = program(place)
        assert find.find_runner() == str(expected)


def test_skips_files_that_are_no_programs(nowhere: Path) -> None:
    program(nowhere / "scripts").chmod(0o644)
    (nowhere / "base" / "bin" / "runner").mkdir(parents=True)
    expected = program(nowhere / "path")
    assert runner_llm.find_runner() == str(expected)


def test_the_error_names_every_place(nowhere: Path) -> None:
    find = installed(nowhere / "prefix" / "lib" / "python3.11" / "site-packages")
    with pytest.raises(find.RunnerNotFound) as caught:
        find.find_runner()
    for place in (
        "scripts/runner (scripts of this Python)",
        "base/bin/runner (scripts of the Python below it)",
        "prefix/bin/runner (the prefix of this package)",
        "site-packages/bin/runner (beside this package)",
        "user/bin/runner (the user's scripts)",
        "empty/path",
        "RUNNER_BINARY",
    ):
        assert place in str(caught.value)


def test_a_virtual_environment(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    made = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
    subprocess.run(made, check=True, timeout=60)
    expected = program(environment / "bin")
    code = "import runner_llm; print(runner_llm.find_runner())"
    variables = {key: value for key, value in os.environ.items() if key != "RUNNER_BINARY"}
    variables["PYTHONPATH"] = str(Path(runner_llm.__file__).parent.parent)
    python = environment / "bin" / "python"
    found = subprocess.run(
        [python, "-c", code], env=variables, stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert found.stdout.strip() == str(expected)


def module(words: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """`python -m runner_llm`, without site packages."""
    source = str(Path(runner_llm.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-S", "-m", "runner_llm", *words],
        env={**os.environ, "PYTHONPATH": source, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )


def test_the_module_executes_the_program_without_any_package(tmp_path: Path) -> None:
    file = program(tmp_path)
    ended = module(["a b", "--c"], RUNNER_BINARY=str(file))
    assert (ended.stdout, ended.returncode) == (f"{file} a b --c\n", 7)
    ended = module(["--version"])
    assert ended.stdout.startswith("runner ")
    ended = module(["--version"], RUNNER_BINARY=str(tmp_path / "nothing"))
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: RUNNER_BINARY names")
    assert "Traceback" not in ended.stderr
