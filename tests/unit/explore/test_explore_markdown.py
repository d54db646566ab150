"""Markdown of foreign texts: rendered, and nothing in it is markup."""

import pytest

from sire_core.explore.markdown import markdown_html, widened_tables


def test_markdown_is_rendered_and_words_are_highlighted():
    html = markdown_html(
        "# The lamp\n\n* Lit by **Ole Brandt**\n\n| who | `when` |\n|---|---|\n| Ole | dusk |", "Who lit it?"
    )
    assert '<p class="heading h1">The lamp</p>' in html
    assert "<strong>Ole Brandt</strong>" in html
    assert "<mark>Lit</mark>" in html
    assert "<td>dusk</td>" in html
    assert "<code>when</code>" in html


def test_names_are_highlighted_as_names():
    assert '<mark class="name">Ole Brandt</mark>' in markdown_html("By Ole Brandt.", "", ["Ole Brandt"])


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "# <svg onload=alert(1)>",
        "git clone <repository> <target>",
        "`<b onclick=alert(1)>`",
        "```<i>\n<b onclick=alert(1)>\n```",
        "<object data=x></object>",
    ],
)
def test_other_tags_stay_text(text):
    html = markdown_html(text)
    assert not any(tag in html for tag in ("<script", "<img", "<svg", "<b ", "<i>", "<a "))
    assert "&lt;" in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<h1 align=center>Fastify</h1>", "<p>Fastify</p>"),
        ('<div align="center">\n<a href="javascript:alert(1)">the\n*docs*</a></div>', "the<br>\n<em>docs</em></p>"),
        ("<img src=x onerror=alert(1) alt='A <b>'>", "<p>A &lt;b&gt;</p>"),
        ("one<br/>two <!-- three -->", "<p>one<br>two </p>"),
        ("| <b onclick=alert(1)>x</b> |\n|---|", "<th>x</th>"),
    ],
)
def test_of_tags_for_looks_the_text_is_shown(text, shown):
    assert shown in markdown_html(text)


def test_a_table_is_as_wide_as_its_widest_row():
    html = markdown_html("|  |\n| --- |\n| -n | --dry-run | do not change |\n| `a|b` | c \\| d |\n\n| e | f |")
    assert "<td>-n</td>\n<td>--dry-run</td>\n<td>do not change</td>" in html
    assert html.count("<th>") == 3
    assert widened_tables("```\n| a |\n|---|\n| b | c |\n```") == "```\n| a |\n|---|\n| b | c |\n```"
    assert widened_tables("a | b\n--|--\nc | d | e") == "a | b |  |\n--|-- | --- |\nc | d | e"


def test_wrapped_lines_are_joined_and_short_ones_stay():
    wrapped = "The hooks API is a set of functions that run at certain points of the life of\na request.\nLast"
    assert markdown_html(wrapped).count("<br>") == 1
    assert markdown_html("Mo Tu We\n1 2 3").count("<br>") == 1


def test_relative_links_lead_where_they_are_known():
    known = {"Hooks.md#on": "/document?id=docs%2FHooks.md"}
    html = markdown_html(
        "[**Hooks**](Hooks.md#on), [gone](./Gone.md) and [x](http://x.org)", target=lambda a: known.get(a, "")
    )
    assert '<a href="/document?id=docs%2FHooks.md"><strong>Hooks</strong></a>, gone and <a href="http://x.org"' in html
    assert html.count("<a ") == html.count("</a>") == 2


@pytest.mark.parametrize("target", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/unit?id=1"])
def test_only_web_addresses_are_links(target):
    assert "<p>here</p>" in markdown_html(f"[here]({target})")


def test_links_leave_and_images_are_not_loaded():
    html = markdown_html('[b](http://x.org/"onclick=1) ![a picture](http://x.org/y.png)')
    assert 'href="http://x.org/%22onclick=1" rel="noopener noreferrer nofollow"' in html
    assert "<img" not in html
    assert "a picture" in html


def test_letters_that_no_file_may_hold_are_replaced():
    html = markdown_html("[\ud800](http://x.org/\ud800) \x00 `\x1b`")
    assert '"http://x.org/%EF%BF%BD"' in html
    assert (html.count("\ufffd"), "\x00" in html, "\x1b" in html) == (3, False, False)
    html.encode()


def test_very_long_texts_are_shown_as_written():
    assert "**a**" in markdown_html("**a** " * 50_000)
