"""What holds pages, exports and logs to be harmless sees what is not."""

import pytest

from tests.robustness import hostile

BAD = [
    (hostile.html, "<p><script>alert(1)</script></p>"),
    (hostile.html, "<p><img src=x onerror=alert(1)></p>"),
    (hostile.html, "<p title='' onmouseover=alert(1)></p>"),
    (hostile.html, "<a href=' javascript:alert(1)'>a</a>"),
    (hostile.html, f"<p>{hostile.NAMES['image']}</p>"),
    (hostile.html, "<p>a\u202eb</p>"),
    (hostile.html, "<p>a\x1bb</p>"),
    (hostile.csv_text, "a,b\n1,=1+1\n"),
    (hostile.csv_text, "a,b\n1,-cmd\n"),
    (hostile.csv_text, 'a,b\n1,"\tx"\n'),
    (hostile.csv_text, "a,b\n1\n"),
    (hostile.terminal, "a\x1b[2J"),
    (hostile.terminal, "a\u202e"),
    (hostile.terminal, "a\rb"),
    (hostile.markdown, "| <b> |\n"),
    (hostile.markdown, "[a](b)\n"),
    (hostile.markdown, "`b`\n"),
    (hostile.markdown, "| a | b |\n| c | d | e |\n"),
    (hostile.header, "a\r\nb"),
    (hostile.header, "\u202e"),
    (lambda text: hostile.log_lines(text, 1), '{"a": 1}\n{"b": 2}\n'),
    (lambda text: hostile.log_lines(text, 1), '["a"]\n'),
]
GOOD = [
    (hostile.html, "<p class='a'>&lt;script&gt; <a href='/runs/1'>a</a></p>"),
    (hostile.csv_text, "a,b\n1,'=1+1\n-1.5,+1e5\n"),
    (hostile.markdown, "| a | b |\n|---|---|\n| &lt;c\\|d | \\`e\\` |\n"),
]


@pytest.mark.parametrize(("check", "text"), BAD)
def test_what_acts_is_seen(check, text):
    with pytest.raises(AssertionError):
        check(text)


@pytest.mark.parametrize(("check", "text"), GOOD)
def test_what_does_not_act_passes(check, text):
    check(text)
