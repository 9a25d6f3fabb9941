"""The code of the guide's page and of the README, and the notebook, work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT.parent / "guide" / "src" / "python.md"


@pytest.mark.parametrize("document", [PAGE, ROOT / "README.md"], ids=lambda path: path.name)
def test_the_code_of_a_document(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    # In the order of the page, like a reader.
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(document), "exec"), names)


def test_the_table_of_errors() -> None:
    import runner_llm
    from runner_llm._errors import _KINDS

    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(code): name for name, code in rows} == {
        code: kind.__name__ for code, kind in _KINDS.items()
    }
    assert all(hasattr(runner_llm, name) for name, _ in rows)


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("polars")
    file = ROOT / "examples" / "quickstart.ipynb"
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells), "commit it without outputs"
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [output.get("data", {}) for cell in cells for output in cell.outputs]
    pages = "".join(str(data.get("text/html", "")) for data in shown)
    assert "Time to first token" in pages
    assert '<iframe sandbox="allow-scripts"' in pages
    # The judgement depends on the load of this machine.
    assert "tpot.mean" in pages
