"""Tables of a run, for any library that reads Arrow."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Literal, Optional

from runner_llm._program import into_file

TableName = Literal["requests", "events", "series", "summary"]


class Table:
    """A table of a run, written by `runner export` when it is first read.

    It has Arrow's PyCapsule interface: `polars.DataFrame(table)`, `pyarrow.table(table)`,
    `pandas.DataFrame.from_arrow(table)` (pandas 3) and DuckDB's `FROM table` read it, batch by
    batch. Each column's metadata has its `unit` and its description. A value that was not measured
    is null.

    Reading needs the package `nanoarrow`, and no other library.
    """

    def __init__(self, run: Path, name: TableName) -> None:
        self._run = run
        self._name = name
        self._file: Optional[Any] = None

    def _path(self) -> str:
        """The path of the temporary file with the table."""
        if self._file is None:
            # A file, because a table of events can be larger than the memory.
            file = tempfile.NamedTemporaryFile(prefix="runner-", suffix=".arrows")
            # A variable may name another place; stdout has the stream format.
            arguments = ["export", str(self._run), f"--table={self._name}", "--format=arrow"]
            arguments.append("--output=-")
            try:
                into_file(arguments, file.file)
            except BaseException:
                file.close()
                raise
            self._file = file
        path: str = self._file.name
        return path

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """A capsule with an Arrow stream. Each call gives a stream from the beginning.

        Raises:
            ImportError: If `nanoarrow` is not installed.
            RunnerError: If the run cannot be read.
        """
        try:
            from nanoarrow.ipc import InputStream  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            raise ImportError(
                "tables of a run need the package nanoarrow: pip install nanoarrow"
            ) from error
        stream: Any = InputStream.from_path(self._path())
        capsule: object = stream.__arrow_c_stream__(requested_schema)
        return capsule

    def to_arrow(self) -> Any:
        """The table as a `pyarrow.Table`."""
        return _library("pyarrow").table(self)

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`; needs `pyarrow` too."""
        _library("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The table as a `polars.DataFrame`."""
        return _library("polars").DataFrame(self)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts, for small tables; needs no further library."""
        rows: list[dict[str, Any]] = _library("nanoarrow").ArrayStream(self).to_pylist()
        return rows

    def __repr__(self) -> str:
        return f"<runner_llm.Table {self._name} of {str(self._run)!r}>"


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs the package {name}: pip install {name}") from error
