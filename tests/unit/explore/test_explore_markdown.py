"""Markdown of foreign texts: rendered, and nothing in it is markup."""

import pytest

from sire_core.explore.markdown import markdown_html


def test_markdown_is_rendered_and_words_are_highlighted():
    html = markdown_html(
        "# The lamp\n\n* Lit by **Ole Brandt**\n\n| who | `when` |\n|---|---|\n| Ole | dusk |", "Who lit it?"
    )
    assert '<p class="heading">The lamp</p>' in html
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
        "<img src=x onerror=alert(1)>",
        "# <svg onload=alert(1)>",
        "`<b onclick=alert(1)>`",
        "```<i>\n<b onclick=alert(1)>\n```",
        '| <a href="javascript:alert(1)"> |\n|---|',
    ],
)
def test_tags_stay_text(text):
    html = markdown_html(text)
    assert not any(tag in html for tag in ("<script", "<img", "<svg", "<b ", "<i>", "<a "))
    assert "&lt;" in html


@pytest.mark.parametrize("target", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/unit?id=1"])
def test_only_web_addresses_are_links(target):
    assert "<a " not in markdown_html(f"[here]({target})")


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
