"""The notebooks run from top to bottom and show what their texts say."""

from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
# What has to be among the outputs: both passages of the question, and the drawn path.
SHOWN = {
    "langchain": ["sire:    ['northern-wren', 'aldous-brack'", "<svg", "'plaque'"],
    "llama_index": ["['northern-wren', 'aldous-brack'", "<svg", "'plaque'", "QueryResult('Who was the mother"],
    "compare_recipes": ["| sire ", "0.50 -> 1.00", "The paths to the hits of sire", "Recall"],
}


def test_every_notebook_is_checked():
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.filterwarnings("ignore")  # of Jupyter, about itself
def test_notebook_runs_and_shows(name, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "kept without outputs: they would go stale"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = "\n".join(
        output.get("text", "") + "\n".join(map(str, output.get("data", {}).values())) for output in outputs
    )
    for text in SHOWN[name]:
        assert text in shown, f"{text!r} is not in {shown[:3000]}"
