"""Documents to text: what is kept, what is refused, and by which name."""

import io
import random
import sys
import zipfile
from collections.abc import Callable

import docx
import pypdf
import pytest

from vimbank.errors import ConfigError, InvalidInput
from vimbank.ingestion import documents
from vimbank.ingestion.documents import MEDIA_TYPES, extract

MARKDOWN = """# The *Title*

One [link](http://a.example)
wraps.

- a
- b
  1. c
  2. d

```python
def f():

    return 1
```

| x | y |
|---|---|
| 1 | `2` |

<div>block <b>of</b> HTML</div>
"""
HTML = """<!doctype html><html><head><title> T &amp; x </title><style>p{}</style></head><body><h1>Head</h1><p>One   two
three<br>four <b>bo</b>ld.</p><script>alert(1)</script><ul><li>a</li> <li>b</ul><pre>x
    y</pre><table> <tr> <th>A</th><th>B</th></tr>
<tr><td>1</td><td>2</td></tr></table><!-- no --><div>tail</div></body></html>"""


def pdf(text: bytes, password: str | None = None) -> bytes:
    """A PDF of one page, written by hand."""
    stream = b"BT /F1 12 Tf 20 200 Td (%s) Tj ET" % text
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Title(A paper)>>",
    ]
    content, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(content)
    content += b"xref\n0 7\n0000000000 65535 f \n" + table
    content += b"trailer<</Size 7/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF" % start
    if password is None:
        return content
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def office(build: Callable[[docx.document.Document], object]) -> bytes:
    document = docx.Document()
    build(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def report(document: docx.document.Document) -> None:
    document.add_heading("Report", 0)
    document.add_paragraph("first")
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    table.cell(1, 0).merge(table.cell(1, 1)).text = "merged"
    document.add_paragraph("last")


def refused(content: bytes, **given: str) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as caught:
        extract(content, **given)  # type: ignore[arg-type]
    (error,) = caught.value.errors
    return error.field, error.message


def test_markdown_becomes_text_with_its_blocks() -> None:
    found = extract(MARKDOWN.encode(), filename="notes.md")
    assert found.title == "The Title"
    assert found.text == (
        "The Title\n\nOne link\nwraps.\n\n- a\n- b\n  1. c\n  2. d\n\n"
        "def f():\n\n    return 1\n\nx | y\n1 | 2\n\nblock of HTML"
    )


def test_html_keeps_its_blocks_and_drops_scripts_styles_and_comments() -> None:
    found = extract(HTML.encode())
    assert found.title == "T & x"
    assert found.text == "Head\n\nOne two three\nfour bold.\n\na\nb\n\nx\n    y\n\nA | B\n1 | 2\n\ntail"


@pytest.mark.parametrize(
    ("content", "media_type", "text"),
    [
        (b"<p>caf\xe9</p>", "text/html; charset=latin-1", "café"),
        ('<meta charset="gbk"><p>龙井茶</p>'.encode("gbk"), "text/html", "龙井茶"),
        (b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><p>a</p></html>", "text/html", "a"),
        (b"plain.html", "text/html", "plain.html"),
        (b"<div>" * 20_000 + b"deep" + b"</div>" * 20_000, "text/html", "deep"),
        (b"<p>one<p>two", "text/html", "one\n\ntwo"),
    ],
)
def test_html_in_other_shapes(content: bytes, media_type: str, text: str) -> None:
    assert extract(content, media_type=media_type).text == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_the_byte_order_mark_decides_else_utf8(encoding: str) -> None:
    found = extract("zwölf 龙井\r\nzwei\r".encode(encoding), filename="tea.notes.txt")
    assert (found.title, found.text) == ("tea.notes", "zwölf 龙井\nzwei")


def test_pdf_text_and_title() -> None:
    found = extract(pdf(b"Hello world"))
    assert (found.title, found.text) == ("A paper", "Hello world")


def test_a_pdf_that_any_reader_opens_is_read_and_one_with_a_password_is_refused() -> None:
    assert extract(pdf(b"Hello", password="")).text == "Hello"
    field, message = refused(pdf(b"Hello", password="secret"))
    assert field == "content"
    assert "encrypted" in message


def test_docx_paragraphs_and_tables_in_order() -> None:
    found = extract(office(report))
    assert (found.title, found.text) == ("Report", "Report\n\nfirst\n\na | b\nmerged\n\nlast")


@pytest.mark.parametrize(
    ("content", "filename", "word"),
    [
        (b" \n", "a.txt", "empty"),
        (b"caf\xe9", "a.txt", "not valid utf-8 at byte 3"),
        ("text".encode("utf-16-le"), "a.txt", "control character at position 1"),
        (b"\x89PNG\r\n\x1a\n\x00", None, "not valid utf-8"),
        (b"<p></p>", "a.html", "no text"),
        (pdf(b" "), "a.pdf", "no text"),
        (pdf(b"Hello")[:300], "a.pdf", "not a readable PDF"),
        (b"no pdf", "a.pdf", "not a readable PDF"),
        (b"PK\x03\x04 broken", None, "not a readable DOCX"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + b"...", "a.docx", "encrypted document or an old .doc"),
    ],
)
def test_bad_content_is_refused_by_name(content: bytes, filename: str | None, word: str) -> None:
    field, message = refused(content, **({"filename": filename} if filename else {}))
    assert field == "content"
    assert word in message


@pytest.mark.parametrize("given", [{"media_type": "image/png"}, {"filename": "a.xlsx"}])
def test_other_kinds_are_refused_with_the_list_of_those_read(given: dict[str, str]) -> None:
    field, message = refused(b"x", **given)
    assert field == "media_type"
    assert MEDIA_TYPES[".pdf"] in message


def test_an_unknown_charset_is_a_fault_of_the_media_type() -> None:
    assert refused(b"x", media_type="text/plain; charset=klingon")[0] == "media_type"


def test_an_unspecific_media_type_leaves_it_to_the_file_name() -> None:
    assert extract(b"# T", media_type="application/octet-stream", filename="a.md").title == "T"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"a" * 101, "text/plain"),
        (b"a" * 101, "text/markdown"),
        (b"<p>" + b"a" * 101, "text/html"),
        (pdf(b"a" * 101), "application/pdf"),
        (office(lambda document: document.add_paragraph("a" * 101)), MEDIA_TYPES[".docx"]),
    ],
)
def test_text_past_the_limit_is_refused(content: bytes, media_type: str) -> None:
    with pytest.raises(InvalidInput, match="more than 100 characters"):
        extract(content, media_type=media_type, max_chars=100)


def test_a_zip_bomb_is_refused_unread() -> None:
    out = io.BytesIO(office(report))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image.bin", bytes(documents.MAX_UNPACKED_BYTES))
    field, message = refused(out.getvalue())
    assert field == "content"
    assert "unpacks to" in message


def test_a_long_title_is_cut() -> None:
    title = extract(f"<title>{'t' * 500}</title><p>x".encode(), media_type="text/html").title
    assert title == "t" * 299 + "…"


def test_damaged_files_give_text_or_a_named_error_never_anything_else() -> None:
    generator = random.Random(20260131)
    for whole, rounds in ((pdf(b"Hello world"), 300), (office(report), 60), (HTML.encode(), 60)):
        for _ in range(rounds):
            damaged = bytearray(whole)
            for _ in range(generator.randint(1, 8)):
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            assert outcome(bytes(damaged)) in {"text", "content", "media_type"}


def outcome(content: bytes) -> str:
    """``text``, or the field that is to blame."""
    try:
        return "text" if extract(content).text else "nothing"
    except InvalidInput as error:
        return error.errors[0].field


def test_a_missing_library_is_named_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ConfigError, match=r"pip install 'vimbank\[documents\]'"):
        extract(b"# T", filename="a.md")
