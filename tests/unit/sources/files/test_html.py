"""What is visible on a web page is in its text; navigation and cookie banners are not."""

import pytest

from conspectus.sources.files.html import read_html

VISIBLE = [
    ("<aside>Beside the text</aside>", "Beside the text"),
    ("<figure><img alt='A boat'><figcaption>Fig. 1</figcaption></figure>", "[Image: A boat]\n\nFig. 1"),
    ("<div>Straight in a division<p>and below</p></div>", "Straight in a division\n\nand below"),
    ("<ul><li><a href=/a>One</a><li><a href=/b>Two</a></ul>", "- One\n\n- Two"),
    ("Updated <time datetime=2026-11-29>yesterday</time>", "Updated yesterday"),
    ("<div class='share author related sidebar comments hidden'>Written by her</div>", "Written by her"),
    ("<div role=tabpanel hidden>Second tab</div>", "Second tab"),
    ("<dl><dt>Tide<dd>Comes and goes</dl>", "Tide\n\nComes and goes"),
    ("<details><summary>More</summary>Folded text</details>", "More\nFolded text"),
    ("<ol start=3><li>three<li value=7>seven<li>eight</ol>", "3. three\n\n7. seven\n\n8. eight"),
    ("<math><mi>x</mi><mo>=</mo><mn>1</mn><annotation>hidden</annotation></math>", "x=1"),
    ("<script type='math/tex'>E = mc^2</script>", "E = mc^2"),
    ("<pre>if a:\n    b()</pre>", "```\nif a:\n    b()\n```"),
    ("<pre>a<br>b</pre>c", "```\na\nb\n```\n\nc"),
    ("<article><header><a href=/>By her</a></header>text</article>", "By her\ntext"),
    ("<footer>Printed in the town of Heron, where it was written. <a href=/>Terms</a></footer>",
     "Printed in the town of Heron, where it was written. Terms"),
    ("<a class=skipped href='#b'>Part B</a> of <a class=skip-link href=/rope>rope</a>", "Part B of rope"),
    ("<p id=cookie-recipe>Bake cookies for ten minutes.</p>", "Bake cookies for ten minutes."),
]  # fmt: skip
LEFT_OUT = [
    "<nav><ul><li><a href=/>Home</a></ul></nav>",
    "<div role=navigation>Go on</div>",
    "<header><a href=/>Logo</a> <a href=/b>Shop</a></header>",
    "<footer><ul><li><a href=/>Terms of use</a><li><a href=/b>Privacy</a></ul></footer>",
    "<div id=onetrust-banner-sdk><p>We value your privacy</p><button>Accept</button></div>",
    "<section class='site cookie-notice'>We use cookies. <button>Accept</button></section>",
    "<noscript>Turn it on</noscript>",
    "<a class=skipToContent_fXgn href='#content'>Skip to main content</a>",
    "<a class='mw-jump-link' href='#bodyContent'>Jump to content</a>",
]


@pytest.mark.parametrize(("markup", "text"), VISIBLE)
def test_what_is_visible_stays(markup: str, text: str) -> None:
    assert read_html(f"<body><main>{markup}</main></body>" if "footer" not in markup else markup).text == text


@pytest.mark.parametrize("markup", LEFT_OUT)
def test_navigation_and_banners_go_and_are_counted(markup: str) -> None:
    page = read_html(f"<body>{markup}<p>The text of the page.</p></body>")
    assert page.text == "The text of the page."
    assert page.notice is not None
    assert page.notice.endswith("% of its words are left out: navigation and cookie banners")


def test_less_than_two_percent_are_not_said() -> None:
    assert read_html(f"<nav>Home</nav><p>{'word ' * 60}</p>").notice is None


@pytest.mark.parametrize("markup", LEFT_OUT)
def test_a_page_of_navigation_alone_is_read(markup: str) -> None:
    page = read_html(f"<body>{markup}</body>")
    assert page.text
    assert page.notice is None


@pytest.mark.parametrize("tag", ["header", "footer", "pre", "ol", "nav", "math", "aside"])
def test_deep_and_open_elements_are_read_in_linear_time(tag: str) -> None:
    assert read_html(f"start{f'<{tag}>' * 20_000}end").text.startswith("start")
