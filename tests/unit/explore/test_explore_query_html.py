"""`sire query --html`."""

from typer.testing import CliRunner

from sire_core import Index
from sire_core.cli.app import app
from sire_core.data import demo_documents


def test_query_writes_the_page_of_a_question(tmp_path):
    Index(tmp_path / "index", recipe="sire").build(demo_documents())
    ask = ["query", str(tmp_path / "index"), "Who commanded the Northern Wren?", "-k", "3", "--html"]
    done = CliRunner().invoke(app, [*ask, str(tmp_path / "q.html")])
    assert done.exit_code == 0
    assert "[3]" in done.stdout
    page = (tmp_path / "q.html").read_text(encoding="utf-8")
    assert page.count('<li id="sire-') == 3
    assert "<svg" in page
    assert "<script" not in page
    refused = CliRunner().invoke(app, [*ask, str(tmp_path / "missing" / "q.html")])
    assert refused.exit_code == 1
    assert "name a file in an existing folder" in refused.stderr
