"""HTML, Markdown and manual pages."""

import base64
import random
import re
import textwrap

import pytest

from sire_core import Document
from sire_core.documents.block_reading import read_blocks
from sire_core.documents.chunker import SentenceChunker, chunk_document
from sire_core.documents.markdown_cleaning import clean_markdown, without_blobs
from sire_core.documents.markdown_sections import paths_of, plain_heading
from sire_core.documents.markdown_writing import undo_escapes
from sire_core.documents.media import media_parts
from sire_core.explore.markdown_html import markdown_html
from sire_core.files.html import html_to_markdown
from sire_core.files.readers import read_documents
from sire_core.files.restructured import read_rst


def read(page):
    return html_to_markdown(page)[1]


THEMES = {
    "sphinx_rtd_theme": """<body class="wy-body-for-nav"><div class="wy-grid-for-nav">
<nav class="wy-nav-side"><div class="wy-side-scroll">other</div></nav>
<section class="wy-nav-content-wrap"><nav class="wy-nav-top">other</nav><div class="wy-nav-content">
<div role="navigation">other</div><div role="main"><section id="menu"><h1>Welcome<a class="headerlink">other</a></h1>
<p>kept</p></section></div></div></section></div>""",
    "Genesis": """<div class="site-inner"><div class="content-sidebar-wrap"><main><h1>Welcome</h1><p>kept</p></main>
<aside class="sidebar">other</aside></div></div>""",
    "a container": '<div class="container no-sidebar"><h1>Welcome</h1><p>kept</p></div>',
    "an id": '<div id="page" class="layout-sidebar-right"><h1>Welcome</h1><p>kept</p></div>',
    "main": """<div class="sidebar"><article>other</article></div><div class="sidebar"><main><h1>Welcome</h1><p>kept</p>
</main><div class="menu">other</div></div>""",
    "article": '<div class="nav"><article><h1>Welcome</h1><p>kept</p></article><ul class="main-menu"><li>other</ul></div>',
    "h1": '<div id="sidebar"><h1>Welcome</h1><p>kept</p></div><div class="left-sidebar">other</div>',
    "nothing else": '<div class="menu"><h2>Welcome</h2><p>kept</p><nav>other</nav></div>',
    "Material": """<div class="md-sidebar md-sidebar--primary">other</div><div class="md-sidebar__inner">other</div>
<article><h1>Welcome</h1><div class="rustdoc-breadcrumbs">other</div><p>kept</p></article>""",
}


def test_terms_with_long_definitions_are_headings_and_others_are_not():
    long = (
        "The limit is counted for each client apart, and it is read again whenever the server is told to reload. " * 3
    )
    entries = "".join(f"<dt><b>limit_{n}</b> (default: {n})<dd>{long}<p>Since 2.{n}." for n in range(3))
    page = read(f"<h1>Settings</h1><h2>Limits</h2><dl>{entries}</dl><h2>Words</h2><dl><dt>a<dd>one<dt>b<dd>two</dl>")
    assert [line for line in page.split("\n") if line.startswith("#")] == [
        "# Settings",
        "## Limits",
        "### limit_0 (default: 0)",
        "### limit_1 (default: 1)",
        "### limit_2 (default: 2)",
        "## Words",
    ]
    assert page.count(" ".join(long.split())) == 3


def test_a_table_is_as_wide_as_its_widest_row():
    table = read("<table><tr><td>options</td></tr><tr><td>a</td><td>b</td><td>c</td></tr></table>")
    assert table == "|  |  |  |\n| --- | --- | --- |\n| options |\n| a | b | c |"


def test_a_cell_of_several_rows_stands_in_each_and_the_table_around_a_note_is_none():
    head = "<tr><th>Kind</th><th>Debit</th></tr>"
    rows = "<tr><td>Assets</td><td rowspan=2>more</td></tr><tr><td>Costs</td></tr><tr><td colspan=2>Equity</td></tr>"
    text = read(f"<table><thead>{head}</thead>{rows}</table><table><tr><td rowspan=2>A<td>1<tr><td>2</table>")
    assert "| Assets | more |\n| Costs | more |\n| Equity |  |" in text
    assert "| A | 1 |\n| A | 2 |" in text
    icon = '<td rowspan="2"><img src="n.png"></td>'
    note = f'<table border="0"><tr>{icon}<th>Note</th></tr><tr><td colspan="2">Cash is one.</td></tr></table>'
    assert read(f'<p>A.</p><div class="note">{note}</div><p>B.</p>') == "A.\n\nNote\n\nCash is one.\n\nB."


def test_a_caption_that_repeats_the_text_of_its_image_stands_once():
    figure = '<div><img src="a.png" alt="The  gate at night"><div class="caption"><p>The gate\nat night</p></div></div>'
    assert read(f"<p>A.</p>{figure}<p>B.</p>") == "A.\n\n![The gate at night](a.png)\n\nB."
    assert read(f"{figure}<p>B.</p><p>The gate at night</p>").endswith("B.\n\nThe gate at night")
    assert read("<p>Figure\xa01. The gate</p><p> <img src=a alt='The gate'> <p>B.") == "Figure\xa01. The gate\n\nB."
    assert read("<p>A. The gate</p><p><img src=a alt='[The gate]'>B.") == "A. The gate\n\n![The gate](a)B."


def test_a_link_without_text_before_any_text_is_nothing():
    assert read('<html><body><div><a href="#"></a></div><p>Some words.</p></body></html>') == "Some words."


@pytest.mark.parametrize("theme", THEMES)
def test_an_element_that_holds_the_content_is_no_navigation(theme):
    found = read(THEMES[theme])
    assert found.replace("## ", "# ") == "# Welcome\n\nkept"


def test_marks_without_ends_lose_no_text():
    text = read("<p>first <a " * 20 + "<p class='x y' hidden>secret</p><!-- c --><b title=\"a\">last</b> a < b <p>end")
    assert text.count("first") == 20
    assert "last a < b" in text
    assert text.endswith("end")
    assert "secret" not in text


def test_a_number_of_thousands_of_digits_is_no_character():
    assert read(f"<p>Alma &#{'9' * 5_000}; and &#{'0' * 5_000}65; left.") == "Alma \ufffd and A left."


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h2><button>Who founded it?</button></h2><p>Petra.<button>Copy</button>", "## Who founded it?\n\nPetra."),
        ("<h2>1. <button>Who?</button><button>Copy</button></h2>Petra.", "## 1. Who?\n\nPetra."),
        ("<h2>Who?<button>Copy</button></h2>Petra.", "## Who?\n\nPetra."),
        ("<details><summary><button>Who?</button></summary>Petra.</details>", "Who?\n\nPetra."),
        ("<dl><dt><button>Who?</button></dt><dd>Petra.</dd></dl>", "Who?\n\nPetra."),
        ("<h2><a id='x'></a></h2><p>Petra.", "Petra."),
        ("<ul><li></li></ul><p>Petra.", "Petra."),
        ("<ul><li><p>One.</p></li><li><ul><li>Two.</li></ul></li></ul><p>Petra.", "- One.\n- Two.\n\nPetra."),
        ("<h2></h2><table><tr><td>a</td></tr></table><p>Petra.", "|  |\n| --- |\n| a |\n\nPetra."),
    ],
)
def test_headings_and_items_mark_their_own_text_only(page, text):
    assert read(page) == text


@pytest.mark.parametrize(
    ("box", "title"),
    [
        ("<div class='note' style='margin: 1in'><h3>{}</h3>Alma.</div>", "Note"),
        ("<div class='admonition alert-info tip'><div><h3>{}</h3><p>Alma.</div></div>", "Tip"),
        ("<div role='note'><h3>{}</h3>Alma.</div>", "Note"),
        ("<div class='example'><h3>{}</h3><pre>a</pre><h4>More</h4></div>", "Example"),
        ("<main><aside><h3>{}</h3>Alma.</aside></main>", "Beside"),
        ("<blockquote><h3>{}</h3>Alma.</blockquote>", "From the letter"),
        ("<figure><h3>{}</h3>Alma.</figure>", "Diagram"),
        ("<ul><li class=note><h3>{}</h3>Alma.</ul>", "Note"),
        ("<div class='note'><dl>" + f"<dt>{{}}<dd>{'Alma. ' * 60}<dt>b<dd>{'B. ' * 99}<dt>c<dd>C.</dl></div>", "a"),
    ],
)
def test_titles_of_boxes_are_no_headings_of_what_follows(box, title):
    section = f"<div class='section'><h2>Options</h2>{box.format(title)}<p>After.<h3>Next</h3></div>"
    text = read(f"<h1>Mill</h1>{section}")
    assert [line for line in text.split("\n") if line.startswith("#")] == ["# Mill", "## Options", "### Next"]
    assert title in text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("<div class='section2-title'>Rope <span>length</span></div>", "### Rope length"),
        ("<p role='heading' aria-level='2'>Rope</p>", "## Rope"),
        ("<div class='section2-title'><p>Rope</p></div>", "Rope"),
        ("<div class='section2-toc-title'>Rope</div>", "Rope"),
        ("<p role='heading'>Rope</p>", "Rope"),
        ("<p class='admonition-title'>Rope</p>", "Rope"),
        (f"<div class='section2-title'>{'Rope ' * 60}</div>", ("Rope " * 60).strip()),
    ],
)
def test_short_lines_with_the_class_or_role_of_a_heading_are_headings(line, text):
    assert read(f"<p>Before.</p><div>{line}</div><div><p>Petra.</p></div>") == f"Before.\n\n{text}\n\nPetra."


@pytest.mark.parametrize(
    "page",
    ["<section class='example'>{}</section>", "<table><tr><td>{}</table>", "<h1 class='note'>a</h1><ul><li>{}</ul>"],
)
def test_headings_of_sections_and_of_pages_laid_out_in_tables_and_lists_stay(page):
    assert "## Options\n" in read(page.format("<h2>Options</h2><p>Alma.</p>"))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (
            """<form id="aspnetForm"><input type="hidden" value="x"><h1>Mill</h1><p>Alma.</p><label>other</label>
<textarea>other</textarea><select><option>other</select><button>other</button></form>After""",
            "# Mill\n\nAlma.\n\nAfter",
        ),
        ("<label>npm</label><div role='tabpanel' hidden>npm i<p hidden>other</p></div>", "npm\n\nnpm i"),
        ("<main>a<aside class='note'>b</aside><aside class='toc-sidebar'>other</aside></main>", "a\n\nb"),
        ("<article>a<aside>b</aside></article><aside class='note'>other</aside>", "a\n\nb"),
    ],
)
def test_forms_panels_and_notes_are_content(page, text):
    assert read(page) == text


PRINTED = """<pre>
STORED(8)                                    STORED(8)

<b>NAME</b>
       stored - keeps the tapes of the mill

<b>DESCRIPTION</b>
       The  daemon  keeps the tapes that the mill has written, and it verifies
       each of them once a week against the list of the director.  It is star-
       ted by the director itself.

       <b>stored -t</b> <i>FILE</i> | <b>less</b>

       <b>-t</b> <i>FILE</i>
              Test the configuration in the file, and end without a word if it
              is right.

       o   Tapes that are full leave the mill for the vault on the other side
           of the river.

<span class="grey">Alma Kurtz            Standards Track             [Page 1]</span></pre>
<hr><pre class="newpage"><span class="grey">RFC 9   Tapes   May 2020</span>
       These are the words of the second page, which a hand copied from one of
       the books.
<span class="grey">Alma Kurtz            Standards Track             [Page 2]</span></pre><hr><pre>
<span class="grey">RFC 9   Tapes   May 2020</span>

2.1.  Vaults

       A vault holds the tapes that are full, in the order of their dates, and
       nobody takes one out of it. &gt;
<span class="grey">Alma Kurtz            Standards Track             [Page 3]</span>
<span class="grey">RFC 9   Tapes   May 2020</span>
</pre>"""


TAPES = "The daemon keeps the tapes of the mill, and verifies each of them once in a week. " * 4


def test_preformatted_prose_is_text_with_headings_items_and_terms():
    text = read(PRINTED)
    assert paths_of(text) == [("NAME",), ("DESCRIPTION",), ("DESCRIPTION", "2.1. Vaults")]
    assert "STORED(8)" not in text
    assert text.count("RFC 9") == text.count("Standards Track") == 1
    for block in (
        "each of them once a week against the list of the director. It is started\nby the director itself.",
        "```\nstored -t FILE | less\n```",
        "-t FILE\n\nTest the configuration in the file, and end without a word if it is right.",
        "- Tapes that are full leave the mill for the vault on the other side of the river.",
    ):
        assert " ".join(block.split()) in " ".join(text.split())
    mail = "\n".join(f"&gt; {line}" for line in textwrap.wrap(TAPES, 60))
    answer = f"<pre>From: Alma Kurtz\nSubject: Tapes\n\n{mail}\n\n{textwrap.fill(TAPES, 70)}</pre>"
    blocks = read_blocks(text := read(answer))
    assert [block.kind for block in blocks] == ["field", "field", "quote", "paragraph"], text


@pytest.mark.parametrize(
    "code",
    [
        "\n".join(f"    # {line}" for line in textwrap.wrap(TAPES, 60)),
        'def keep(tape):\n    """Keep a tape of the mill, and verify it."""\n    return list(tape)\n' * 4,
        "$ stored -t FILE\nThe daemon keeps the tapes.\n$ less FILE\nThe mill is old.",
        "SELECT name FROM tapes WHERE is_full AND vault = 'the one at the river' ORDER BY name\n" * 5,
        "Reading the list of the tapes from the vault ... 14 are left now\n" * 6,
    ],
)
def test_preformatted_code_stays_code(code):
    assert read(f"<pre>{code}</pre>") == f"```\n{code.strip(chr(10))}\n```"
    prose = textwrap.fill(TAPES, 60)
    assert read(f"<pre class='highlight'>{prose}</pre>") == read(f"<pre><code>{prose}</code></pre>")
    assert read(f"<pre><code>{prose}</code></pre>") == f"```\n{prose}\n```"


@pytest.mark.parametrize("code", ["Write\n```\ncode", "```\n~~~~\na", "  ````\n# no heading\n\n```", "~~~\na", "```"])
def test_no_line_of_code_ends_its_fence(code):
    markdown = clean_markdown(read(f"<pre>{code}</pre><h2>History</h2><p>Petra founded it.</p>"))
    assert paths_of(markdown) == [(), ("History",)]
    assert code in markdown


def test_words_that_look_like_a_comment_are_words():
    markdown = read(
        "<p>It starts with &lt;!-- in HTML, as in <code>&lt;!-- a</code>.</p><pre>&lt;!-- b</pre><p>Petra.</p>"
    )
    assert markdown == "It starts with &lt;!-- in HTML, as in `<!-- a`.\n\n```\n<!-- b\n```\n\nPetra."
    assert clean_markdown(markdown) == markdown


@pytest.mark.parametrize(
    ("row", "header"),
    [
        ("<tr><th>Pool<th>Threads", "| Pool | Threads |"),
        ("<thead><tr><td>Pool<td>Threads<tbody>", "| Pool | Threads |"),
        ("<tr><td><th>2019", "|  | 2019 |"),  # the corner of a matrix
        ("", "|  |  |"),
    ],
)
def test_only_cells_of_a_header_are_the_header_of_a_table(row, header):
    rows = "<tr><th>lease<td>4<tr><th>loan<td>6"
    assert read(f"<table>{row}{rows}</table>") == f"{header}\n| --- | --- |\n| lease | 4 |\n| loan | 6 |"


def test_no_piece_of_a_long_table_without_a_header_repeats_its_first_row():
    rows = "".join(f"<tr><td>Station {number}<td>Line {number % 3}</tr>" for number in range(60))
    pieces = SentenceChunker(max_tokens=60, overlap_tokens=0).split(read(f"<table>{rows}</table>"))
    assert len(pieces) > 3
    assert [number for number, piece in enumerate(pieces) if "Station 0 " in piece] == [0]
    assert all(next(media_parts(piece)).kind == "table" for piece in pieces)


def test_items_of_lists_keep_their_numbers_and_pictures_in_base64_only_their_words():
    page = (
        "<ol start=3><li>a<ul><li>b</ul><li>c</ol><ul><li>d</ul><p><img alt='A chart' src='data:image/png;base64,QUJD'>"
    )
    assert html_to_markdown(page)[1] == "3. a\n- b\n4. c\n- d\n\nA chart"


STEPS = {
    "DocBook": """<div class="navheader"><table width="100%"><tr><th colspan="3">12. Locks of the queue</th></tr><tr>
<td><a accesskey="p" href="a">Prev</a></td><th>Part II. Jobs</th><td><a accesskey="n" href="b">Next</a></td></tr></table>
<hr></div>""",
    "DocBook with pictures": """<table><tr><td><a accesskey="p" href="a"><img src="prev.png" alt="Prev"></a></td>
<td><a accesskey="u" href="u"><img src="up.png" alt="Up"></a></td><th>User manual</th></tr></table>""",
    "Texinfo": """<div class="header"><p>Next: <a href="b" rel="next">Leases</a>, Previous: <a href="a" rel="prev">Jobs</a>,
Up: <a href="u" rel="up">Queues</a> &nbsp; [<a href="i" rel="index">Index</a>]</p></div>""",
    "Texinfo in German": '<p>Nächste: <a href="b" rel="next">Leases</a>, Nach oben: <a href="u" rel="up">Queues</a></p>',
    "without relations": '<p>Next: <a href="b">Leases</a>, Up: <a href="u">Queues</a></p>',
    "Doxygen and GAP": '<div>[<a href="t">Top of Book</a>] [<a href="c">Contents</a>] [<a href="n">Next Chapter</a>]</div>',
    "numbers": '<div>Go to chapter: <a href="0">Top</a> <a href="1">1</a> <a href="2">2</a> <a href="i">Ind</a></div>',
    "back to the top": '<div class="top"><a href="#header"><img alt="top" src="up.gif"></a></div>',
    "Sphinx": '<div class="related"><ul><li><a href="b" rel="next">next</a> |</li><li><a href="a">previous</a></li></ul></div>',
}


@pytest.mark.parametrize("name", STEPS)
def test_links_to_the_pages_before_and_behind_are_left_out(name):
    page = f"<body>{STEPS[name]}<h1>Claims</h1><p>A worker claims.</p>{STEPS[name]}</body>"
    assert read(page) == "# Claims\n\nA worker claims."


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>See the <a href='b' rel='next'>next chapter</a> for leases.</p>", "See the next chapter for leases."),
        ("<dl><dt><a href='#n'>next</a></dt><dd>The job behind.</dd></dl>", "next\n\nThe job behind."),
        ("<p><a name='top'>Top</a></p><p>Of it.</p>", "Top\n\nOf it."),
        ("<div><h2>Up</h2><p><a href='b' rel='next'>Leases</a> end.</p></div>", "## Up\n\nLeases end."),
        (
            "<table><tr><td><a href='a'>Lease</a></td><td>up 4 %</td></tr></table>",
            "|  |  |\n| --- | --- |\n| Lease | up 4 % |",
        ),
        ("<div><p>Text.</p><p><a href='b' rel='next'>Leases</a></p></div>", "Text."),
        ("<nav><ol><li><a href='1'>Page 1</a><li><a href='2'>Page 2</a></ol></nav>", "1. Page 1\n2. Page 2"),
    ],
)
def test_links_within_a_text_stay(page, text):
    assert read(page) == text


SENTENCES = "<p>A purge deletes the files that a removal keeps.</p><p>The files are those of a package.</p>"
LINKS = (
    "<ul><li><a href='a'>A first page of the manual</a></li><li><a href='b'>A second page of the manual</a></li></ul>"
)


@pytest.mark.parametrize(
    "opening",
    [
        *(f"<div class='{name}'>" for name in ("sidebar", "menu", "toc", "main-nav", "sidebar box-sidebar", "footer")),
        *("<aside>", "<nav>", "<footer>", "<div role='banner'>", "<section id='navigation'>", "<header class='nav'>"),
        "<table><tr><td><div class='sidebar'>",
    ],
)
def test_running_text_is_content_and_links_are_navigation_whatever_their_class(opening):
    tag = re.findall(r"<(\w+)", opening)[-1]
    page = f"<h1>Purge</h1><p>It deletes.</p>{opening}%s</{tag}>"
    kept = read(page % (SENTENCES + "<pre>dpkg --purge</pre>"))
    assert "A purge deletes the files that a removal keeps." in kept
    assert "dpkg --purge" in kept
    assert "The files are those of a package." in read(page % (f"<nav>{LINKS * 9}</nav>{SENTENCES}"))
    for text in (
        LINKS,
        LINKS + "<p>Two pages.</p>",
        "<p>© Copyright 2010-2023 The authors of the book. Created using Sphinx.</p>",
    ):
        left = read(page % text)
        assert left.startswith("# Purge\n\nIt deletes.")
        assert not re.search("second|Two|Copyright", left)


def test_links_around_headings_and_places_of_links_hide_no_heading():
    page = "<h1><a class='toc-backref' href='#t'>Locks</a></h1><h2><a id='menu' name='menu'>Menus</a></h2><a id='skip' href='#m'>Skip</a>"
    assert read(page) == "# Locks\n\n## Menus"


def test_the_author_of_a_quotation_is_content():
    assert (
        read("<p>a<blockquote>Words.<footer>Petra</footer></blockquote><footer>other</footer>")
        == "a\n\nWords.\n\nPetra"
    )


def test_links_above_the_heading_of_a_page_are_left_out():
    banner = "<div id='banner'><a href='e'>Download the ebook</a></div><p><a href='d'><img alt='A Site' src='a.png'></a><a href='i'><img alt='Documents' src='b.png'></a></p>"
    steps = """<ul class='docnav'><li><a accesskey='p' href='a'><b>Prev</b>1. Jobs</a></li><li>The Handbook of Queues</li><li><a
accesskey='n' href='b'>Next</a></li></ul>"""
    assert read(f"{banner}{steps}<h1>Claims</h1><p>A worker claims.</p>{steps}") == "# Claims\n\nA worker claims."
    assert read(f"<p>Read <a href='a'>Jobs</a></p><h1>Claims</h1>{banner}").startswith(
        "Read Jobs\n\n# Claims\n\nDownload"
    )


BASE64 = base64.b64encode(random.Random(3).randbytes(30_000)).decode()
WRAPPED = "\n".join(textwrap.wrap(BASE64, 64))
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"max\_retry\_count and R&amp;D &copy; &#8364; &#x41;", "max_retry_count and R&D © € A"),
        (r"`a\_b &amp;` a\_b", r"`a\_b &amp;` a_b"),
        ("```\na\\_b\n```\n\n    a\\_b\n\na\\_b", "```\na\\_b\n```\n\n    a\\_b\n\na_b"),
        ("- item\n\n    a\\_b", "- item\n\n    a_b"),
        (r"\# no heading", r"\# no heading"),
        (r"\#1 of C\#", "#1 of C#"),
        ("| a\\|b | c\\_d |\n| --- | --- |\n| e\\|f | &lt; |", "| a\\|b | c_d |\n| --- | --- |\n| e\\|f | < |"),
        (r"\<!-- no comment --> but \<b\>", r"\<!-- no comment --> but <b>"),
        (r"C:\dir &unknown; AT&T a & b \\", "C:\\dir &unknown; AT&T a & b \\"),
        ("text " + "".join(f"\\{mark}" for mark in MARKS), f"text {MARKS}"),
    ],
)
def test_escapes_and_character_references_are_undone_outside_of_code(text, plain):
    assert undo_escapes(text) == plain


def test_names_with_escapes_are_found_in_text_headings_and_titles(tmp_path):
    (tmp_path / "a.md").write_text("# my\\_module \\#1\n\n## Use `a\\_b` \\<now\\>\n\nSet max\\_retry\\_count.\n")
    (tmp_path / "b.md").write_text("---\ntitle: R&amp;D of my\\_module\n---\nText.\n")
    first, second = read_documents(tmp_path).documents
    assert (first.title, second.title) == ("my_module #1", "R&D of my_module")
    assert "max_retry_count" in first.text
    (chunk,) = chunk_document(first, SentenceChunker())
    assert chunk.title == "my_module #1 > Use a\\_b <now>"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"Before ![A chart](data:image/png;base64,{BASE64}) behind.", "Before A chart behind."),
        (f"![A chart][c]\n\n[c]: data:image/png;base64,{BASE64}\nEnd.", "A chart End."),
        (f"![Chart] ![a][] ![x][y]\n\n[chart]: data:image/png;base64,{BASE64}\n", "Chart ![a][] ![x][y]"),
        (f"![A chart](data:image/png;base64,{WRAPPED}) behind.", "A chart behind."),
        (f"<img alt='A chart' src=\"data:image/png;base64,{BASE64}\"> behind.", "A chart behind."),
        (f"A key:\n\n-----BEGIN KEY-----\n{WRAPPED}\n-----END KEY-----\nEnd.", "A key: -----BEGIN KEY----- -----END KEY----- End."),
        (f"```\n{WRAPPED}\n```\nEnd.", "``` ``` End."),
        (f"x = 1\n//# sourceMappingURL=data:application/json;base64,{BASE64}\nEnd.", "x = 1 //# sourceMappingURL=data: End."),
        (f"Word {BASE64} word.", "Word word."),
        ("data: is a word.", None),
        ("\n".join(["0123456789abcdef" * 4] * 5), None),
        ("中文没有空格" * 70, None),
        ("https://a.example/" + "path-of-words/" * 12, None),
    ],
    ids=range(13),
)  # fmt: skip
def test_runs_that_are_no_words_are_no_passages(text, kept):
    found = " ".join(without_blobs(text).split())
    assert found == (" ".join(text.split()) if kept is None else kept)
    assert len(chunk_document(Document("d", text), SentenceChunker())) == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (":::note\nText.\n:::", "Text."),
        ("::: warning Mind the gap\nText.\n:::", "Mind the gap\nText."),
        (":::tip[My title]\nText.", "My title\nText."),
        ('!!! tip "Speed"\n    Text.', "Speed\nText."),
        ("??? note\n\n\tText.\n\n\t- one\n\t- two\n\nAfter.", "\nText.\n\n- one\n- two\n\nAfter."),
        (
            "!!! note\n    ```\n    !!! tip\n        code\n    ```\n\n        code",
            "```\n!!! tip\n    code\n```\n\n    code",
        ),
        ('=== "Linux"\n\n    Run:\n\n    !!! tip\n        Fast.\n\n    End.', "Linux\n\nRun:\n\nFast.\n\nEnd."),
        ("1. Step\n\n    !!! note\n        Text.\n\n    Rest.", "1. Step\n\n    Text.\n\n    Rest."),
        ("Code:\n\n    !!! note\n        code", None),
        ("!!! note\nText.\n\n    code", "Text.\n\n    code"),
        (":::note\n    Text.\n:::", "Text."),
        ("- a\n\n    :::note\n    Text.\n    :::", "- a\n\n    Text."),
        ("/// tip | Speed\n\nText.\n///", "Speed\n\nText."),
        ("Pear\n:   A fruit.\n\n    - ripe\n:   A tree.", "Pear\n\nA fruit.\n\n- ripe\n\nA tree."),
        ("Text.[^1]\n\n[^1]: Note.\n\n    More.", "Text.[^1]\n\n[^1]: Note.\n\nMore."),
        ("```{note} Speed\n:class: wide\nText.\n```\nEnd.", "Speed\nText.\nEnd."),
        ("````{tip}\nText.\n```{note}\nMore.\n```\n````\nEnd.", "Text.\nMore.\nEnd."),
        ("```{code-block} sh\nrun\n```", "```{code-block} sh\nrun\n```"),
        ("> [!NOTE]\n> Text.", "> \n> Text."),
        ('A {{< glossary_tooltip text="pod" term_id="p" >}} runs.', "A pod runs."),
        ('{{% alert title="Hot" %}}\nText.\n{{% /alert %}}', "Hot\nText."),
        ('<TabItem value="a" label="Apple">Text.</TabItem>', "Apple Text."),
        ('<Tabs>\n<TabItem value="a" label="Apple">\nText.\n</TabItem>\n</Tabs>', "Apple\nText."),
        ("import Tabs from '@theme/Tabs';\nText.", "Text."),
        ("{: .note }\nText.", "Text."),
        ("{% comment %}It broke. -NF{% endcomment %}\nText.", "Text."),
        ("We import goods from 'Nordvik' and export them.", None),
        ("If x <T> holds, `{{< kept >}}`", None),
        ("An order:\n\n<order>\n<item>\n<name>Blue</name>\n</item>\n</order>\n\nCall <prospect>\n  <prospect>", None),
        ("<div>\n<my-card title='Hot'>\nText.\n</my-card>\n</div>", "Hot\nText."),
    ],
)
def test_marks_of_site_generators_are_no_text(text, kept):
    if kept is None:
        assert clean_markdown(text).replace("``", "`{{< kept >}}`") == text
    else:
        assert clean_markdown(text) == kept
        assert clean_markdown(kept) == kept


@pytest.mark.parametrize(
    "opening", ["!!! note", "??? note", '=== "Tab"', ":::note", "/// note", "[^1]: Foot.", "Pear\n:   A fruit."]
)
def test_what_a_note_holds_is_shown_as_it_is_elsewhere(opening):
    held = (
        "Text with max\\_retry.\n\n- one\n- two\n\n```sh\nrun a\\_b\n  --fast\n```\n\n| a | b |\n|---|---|\n| c | d |"
    )
    page = undo_escapes(clean_markdown(f"{opening}\n\n{textwrap.indent(held, '    ')}\n\nEnd."))
    assert markdown_html(undo_escapes(held)).removesuffix("</div>").removeprefix('<div class="text">') in markdown_html(
        page
    )
    assert page.endswith("End.")


def test_notes_of_rst_hold_lists_and_code():
    text = read_rst(
        ".. note::\n\n   - one\n   - two\n\n.. tip::\n\n   ::\n\n      code\n\n.. note:: Text.\n\n   More.\n"
    )[1]
    assert text == "Note:\n\n- one\n- two\n\nTip:\n\n```\ncode\n```\n\nNote: Text.\n\nMore."


def test_a_text_file_in_rst_is_read_as_rst(tmp_path):
    rst = "Lock\n====\n\n.. contents:: Pages\n\nOpen the gate first. ::\n\n  gate --open\n\ngate.wait\n  Seconds. Default: 60\n"
    (tmp_path / "lock.txt").write_text(rst)
    (tmp_path / "prose.txt").write_text(rst.replace(".. contents:: Pages\n\n", ""))
    lock, prose = read_documents(tmp_path).documents
    assert lock.title == "Lock"
    assert lock.text == "# Lock\n\nOpen the gate first.\n\n```\ngate --open\n```\n\ngate.wait\n\nSeconds. Default: 60"
    assert "Open the gate first. ::" in prose.text


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("Request Body { #request-body }", "Request Body"),
        ("Body {: #x .y }", "Body"),
        ("Body {{< ref >}}", "Body"),
        ("Body¶", "Body"),
        ("Vec<T> and <b>bold</b>", "Vec<T> and bold"),
        (r"Vec\<T\> &amp; more", "Vec<T> & more"),
        ("[![Build](a.svg)](b) Name", "Build Name"),
        ("<https://a.example>", "https://a.example"),
    ],
)
def test_headings_have_no_marks(line, heading):
    assert plain_heading(line) == heading
