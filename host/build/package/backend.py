"""maturin as the backend of pip and uv (PEP 517), which builds the plugins inside the program first."""

import maturin
import package

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package.prepare(package.host())
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
