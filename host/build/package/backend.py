"""Builds the wheel from a checkout, for pip and uv (PEP 517): the program as `cargo xtask dist` links it.

The setting `binary` names a program that is there: `pip install . --config-settings binary=PATH`.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]


class UnsupportedOperation(Exception):
    """PEP 517's name of an error: the backend makes no source distribution."""


def xtask(*arguments):
    subprocess.run(["cargo", "xtask", *arguments], cwd=ROOT, check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    # The date of a package is that of the last commit; sources that were unpacked have none.
    if not (ROOT / ".git").exists():
        os.environ.setdefault("SOURCE_DATE_EPOCH", str(int(time.time())))
    binary = (config_settings or {}).get("binary")
    if not binary:
        xtask("dist")
        binary = "target/dist/runner"
    with tempfile.TemporaryDirectory() as made:
        xtask("package", "wheel", "--binary", binary, "--output", made)
        (wheel,) = Path(made).glob("*.whl")
        shutil.move(wheel, wheel_directory)
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):
    raise UnsupportedOperation("the sources are a git repository: pip install git+URL")
