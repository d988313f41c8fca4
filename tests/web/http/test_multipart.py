"""Forms with files: read as browsers send them, in pieces of any size, and refused where they are none."""

from contextlib import ExitStack

import pytest

from profsvc.errors import UsageError
from profsvc.web.http.multipart import MAX_FIELD_BYTES, MAX_PARTS, Form

BODY = (
    b'--XX\r\nContent-Disposition: form-data; name="run"\r\n\r\nto\xc3\xa9day\r\n'
    b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a \xe2\x82\xac.csv"\r\n'
    b"Content-Type: text/csv\r\n\r\n"
    b"1,2\r\n--X\r\n\x00\xff\r\n"
    b'--XX\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\n\r\n--XX--\r\n'
)


@pytest.fixture
def form(tmp_path):
    with ExitStack() as held:
        yield Form(b"XX", lambda: tmp_path, held)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_fields_and_files_come_in_pieces(form, size):
    for begin in range(0, len(BODY), size):
        form.write(BODY[begin : begin + size])
    assert form.fields == [("run", "to\u00e9day")]
    assert [part.file_name for part in form.files] == ["a \u20ac.csv", ""]
    form.files[0].file.seek(0)
    assert form.files[0].file.read() == b"1,2\r\n--X\r\n\x00\xff"


def test_what_is_no_form_is_refused(form):
    with pytest.raises(UsageError, match="cannot be read"):
        form.write(b"{}" * 10)


def test_a_form_has_an_end(form):
    part = b'--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
    with pytest.raises(UsageError, match="fewer at once"):
        form.write((part + b"x\r\n") * (MAX_PARTS + 1))


def test_a_field_has_an_end(form):
    with pytest.raises(UsageError, match=f"more than {MAX_FIELD_BYTES}"):
        form.write(b'--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"x" * (MAX_FIELD_BYTES + 1))


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [(b"a=b", "application/x-www-form-urlencoded", "multipart/form-data"), (b"x", "multipart/form-data", "multipart"),
     (BODY.replace(b"a \xe2\x82\xac.csv", b""), "multipart/form-data; boundary=XX", "no file was chosen")],
)  # fmt: skip
def test_what_is_sent_wrongly_is_said(service, content, kind, message):
    answer = service.http.post(f"{service.url}/upload", content=content, headers={"content-type": kind})
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]
