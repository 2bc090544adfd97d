"""The text of a document: plain text, Markdown, HTML, PDF and DOCX, each by its library (extra ``documents``)."""

import codecs
import importlib
import io
import itertools
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final

from vimbank.errors import ConfigError, InvalidInput

__all__ = ["MAX_CHARS", "MEDIA_TYPES", "Extracted", "extract"]

MAX_CHARS: Final = 2_000_000
"""Longest text taken from one document unless the caller says otherwise."""

MAX_TITLE_CHARS: Final = 300
"""A longer title that a document names is cut: it takes room in every segment's embedding."""

MAX_UNPACKED_BYTES: Final = 128 * 2**20
"""A DOCX whose parts unpack to more is refused unread: it is no office document but a zip bomb."""

MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
"""Media type by file name suffix; the values are all that ``extract`` reads (and ``text/x-markdown``)."""

REFUSED_SUFFIXES: Final = {".doc", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".rtf", ".epub", ".zip", ".gz"}
UNSPECIFIC: Final = {"", "application/octet-stream", "binary/octet-stream"}
BOMS: Final = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
OLE_MAGIC: Final = bytes.fromhex("d0cf11e0a1b11ae1")
META_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
# Tab, newline, form feed, carriage return and escape occur in real text files; other control characters do not.
CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
DROPPED_TAGS: Final = ("script", "style", "noscript", "template", "svg", "head", "iframe", "object")
LINE_TAGS: Final = (
    *("address", "article", "aside", "body", "caption", "dd", "details", "dialog", "div", "dt", "fieldset"),
    *("figcaption", "footer", "form", "header", "hr", "li", "main", "nav", "section", "summary", "tr"),
)
PARAGRAPH_TAGS: Final = (
    *("blockquote", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"),
)
VERBATIM_TAGS: Final = ("pre", "textarea")
# Stand for breaks while white space is collapsed; decoded text holds no control characters.
LINE_BREAK, PARAGRAPH_BREAK = "\x01", "\x02"
GAPS: Final = dict.fromkeys(LINE_TAGS, LINE_BREAK) | dict.fromkeys(PARAGRAPH_TAGS, PARAGRAPH_BREAK)
OPENINGS: Final = {"br": "\n", "td": " | ", "th": " | "}
# What parsers raise on damaged files beside their own errors; a mutated file reaches any of them.
PARSER_ERRORS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's title, where it names one or has a file name, and its text: never blank, blocks on own lines."""

    title: str | None
    text: str


def extract(
    content: bytes, *, media_type: str | None = None, filename: str | None = None, max_chars: int = MAX_CHARS
) -> Extracted:
    """The text of a document.

    What it is, is decided by ``media_type`` (parameters such as ``charset`` are honoured), else by the file name's
    suffix, else by its first bytes, else it is plain text. Text is decoded by its byte order mark, the declared
    charset, an HTML ``meta charset``, else as UTF-8, strictly.

    Args:    content: the whole file.  max_chars: the longest text accepted, characters.
    Raises:  InvalidInput: ``media_type`` is not one of those read; ``content`` is empty, cannot be decoded, is damaged
             or encrypted, holds no text, or is too long.  ConfigError: the extra ``documents`` is not installed.
    """
    if not content.strip():
        raise InvalidInput.of("content", "is empty")
    kind, charset = _kind_of(content, media_type, filename)
    read = READERS.get(kind)
    if read is None:
        known = ", ".join(sorted(READERS))
        raise InvalidInput.of("media_type", f"{kind!r} is not supported; supported are {known}")
    found = read(content, charset, max_chars)
    text = _tidy(found.text)
    if not text:
        raise InvalidInput.of("content", "holds no text; a scanned document needs text recognition first")
    _check_length(len(text), max_chars)
    return Extracted(_short(" ".join((found.title or "").split()) or _stem(filename)), text)


def _kind_of(content: bytes, media_type: str | None, filename: str | None) -> tuple[str, str | None]:
    """(media type, declared charset)."""
    kind, _, parameters = (media_type or "").partition(";")
    kind = kind.strip().lower()
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", parameters, re.IGNORECASE)
    if kind in UNSPECIFIC:
        kind = _kind_by_name(filename) or _kind_by_magic(content)
    return kind, charset and charset[1]


def _kind_by_name(filename: str | None) -> str | None:
    suffix = PurePath(filename or "").suffix.lower()
    return MEDIA_TYPES.get(suffix, f"application/x-{suffix[1:]}" if suffix in REFUSED_SUFFIXES else None)


def _kind_by_magic(content: bytes) -> str:
    if content[:1024].lstrip().startswith(b"%PDF-"):
        return MEDIA_TYPES[".pdf"]
    if content.startswith((b"PK\x03\x04", OLE_MAGIC)):
        return MEDIA_TYPES[".docx"]
    if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html)\b", content[:1024], re.IGNORECASE):
        return MEDIA_TYPES[".html"]
    return MEDIA_TYPES[".txt"]


def _short(title: str | None) -> str | None:
    return title if title is None or len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1] + "…"


def _stem(filename: str | None) -> str | None:
    return PurePath(filename).stem or None if filename else None


def _check_length(chars: int, max_chars: int) -> None:
    if chars > max_chars:
        raise InvalidInput.of("content", f"its text has more than {max_chars} characters")


def _decode(content: bytes, charset: str | None) -> str:
    encoding = next((name for mark, name in BOMS if content.startswith(mark)), charset or "utf-8")
    try:
        text = content.decode(encoding)
    except LookupError as exc:
        raise InvalidInput.of("media_type", f"unknown charset {encoding!r}") from exc
    except UnicodeError as exc:
        at = f" at byte {exc.start}" if isinstance(exc, UnicodeDecodeError) else ""
        raise InvalidInput.of(
            "content", f"is not valid {encoding}{at}; convert it to UTF-8 or declare its charset"
        ) from exc
    if found := CONTROL.search(text):
        raise InvalidInput.of("content", f"is not text: control character at position {found.start()}")
    return text


def _tidy(text: str) -> str:
    """Line ends as newlines, no blanks at line ends, at most one empty line in a row."""
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


# --- plain text and Markdown -----------------------------------------------------------------------------------


def _read_plain(content: bytes, charset: str | None, max_chars: int) -> Extracted:
    text = _decode(content, charset)
    _check_length(len(text), max_chars)
    return Extracted(None, text)


def _read_markdown(content: bytes, charset: str | None, max_chars: int) -> Extracted:
    source = _decode(content, charset)
    _check_length(len(source), 4 * max_chars)
    tokens = (
        _library("markdown_it")
        .MarkdownIt("commonmark", {"maxNesting": 200})
        .enable(["table", "strikethrough"])
        .parse(source)
    )
    return Extracted(_markdown_title(tokens), "".join(_markdown_pieces(tokens)))


def _markdown_title(tokens: list[Any]) -> str | None:
    """The first heading of level 1."""
    for opening, inline in itertools.pairwise(tokens):
        if opening.type == "heading_open" and opening.tag == "h1":
            return "".join(_inline_pieces(inline)) or None
    return None


def _markdown_pieces(tokens: list[Any]) -> Iterator[str]:
    bullets: list[int | None] = []  # a list's next number, None for dashes; one entry a nesting level
    first_cell = True
    for token in tokens:
        if token.type in ("fence", "code_block"):
            yield f"{token.content}\n"
        elif token.type == "html_block":
            yield f"{_html_text(token.content)}\n\n"
        elif token.type == "inline":
            yield "".join(_inline_pieces(token))
        elif token.type == "bullet_list_open":
            bullets.append(None)
        elif token.type == "ordered_list_open":
            bullets.append(int(token.attrGet("start") or 1))
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            bullets.pop()
            yield "\n"
        elif token.type == "list_item_open":
            number = bullets[-1]
            yield "  " * (len(bullets) - 1) + ("- " if number is None else f"{number}. ")
            bullets[-1] = None if number is None else number + 1
        elif token.type == "tr_open":
            first_cell = True
        elif token.type in ("th_open", "td_open"):
            yield "" if first_cell else " | "
            first_cell = False
        elif token.type in ("tr_close", "hr"):
            yield "\n"
        elif token.type in ("paragraph_close", "heading_close", "table_close"):
            yield "\n" if token.hidden or bullets else "\n\n"


def _inline_pieces(inline: Any) -> Iterator[str]:
    for token in inline.children or ():
        if token.type in ("text", "code_inline"):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.type == "image":
            yield token.content
        elif token.type == "html_inline" and re.match(r"<br\b", token.content, re.IGNORECASE):
            yield "\n"


# --- HTML ------------------------------------------------------------------------------------------------------


def _read_html(content: bytes, charset: str | None, max_chars: int) -> Extracted:
    declared = META_CHARSET.search(content[:4096])
    if charset is None and declared is not None:
        charset = declared[1].decode("ascii")
    source = _decode(content, charset)
    _check_length(len(source), 10 * max_chars)
    soup = _soup(source)
    heading = soup.title or soup.find("h1")
    title = heading.get_text() if heading else None
    return Extracted(title, _text_of(soup))


def _html_text(source: str) -> str:
    return _text_of(_soup(source))


def _soup(source: str) -> Any:
    _library("lxml")  # the parser: closes what authors left open, in linear time
    source = re.sub(r"^\s*<\?xml[^>]*\?>", "", source)  # XHTML is read as the HTML it is
    markup = source if "<" in source else f"<p>{source}"  # else the library takes a short text for a file name
    return _library("bs4").BeautifulSoup(markup, "lxml")


def _text_of(soup: Any) -> str:
    """All shown text: one line a block, one empty line between paragraphs, cells apart by ``|``, ``pre`` verbatim."""
    text = "".join(_html_pieces(soup))
    text = re.sub(r" *[\x01\x02][\x01\x02 ]*", _break, text)
    return re.sub(r"(?m)^(\| )+| \|$", "", text).strip("\n")


def _break(gap: re.Match[str]) -> str:
    return "\n\n" if PARAGRAPH_BREAK in gap[0] else "\n"


def _html_pieces(soup: Any) -> Iterator[str]:
    """Strings and breaks in order, in one pass: a tree as deep as it is long is read in linear time."""
    open_tags: list[Any] = []
    verbatim = dropped = 0  # how many open tags ask for it
    for node in soup.descendants:
        while open_tags and node.parent is not open_tags[-1]:
            closed = open_tags.pop()
            yield GAPS.get(closed.name, "")
            verbatim -= closed.name in VERBATIM_TAGS
            dropped -= closed.name in DROPPED_TAGS
        if hasattr(node, "children"):
            open_tags.append(node)
            verbatim += node.name in VERBATIM_TAGS
            dropped += node.name in DROPPED_TAGS
            yield GAPS.get(node.name, "") + OPENINGS.get(node.name, "")
        elif not dropped and type(node).__name__ in ("NavigableString", "CData"):  # not comments and the like
            yield str(node) if verbatim else re.sub(r"\s+", " ", node)


# --- PDF -------------------------------------------------------------------------------------------------------


def _read_pdf(content: bytes, _charset: str | None, max_chars: int) -> Extracted:
    pypdf = _library("pypdf")
    errors = importlib.import_module("pypdf.errors")
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        # Many files are encrypted with an empty password, only to forbid printing: those any reader opens.
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidInput.of("content", "is an encrypted PDF; remove its password first")
        text = _joined((page.extract_text() for page in reader.pages), max_chars)
        title = reader.metadata.title if reader.metadata else None
    except InvalidInput:
        raise
    except errors.DependencyError as exc:
        raise InvalidInput.of("content", "is an encrypted PDF; remove its encryption first") from exc
    except (errors.PyPdfError, *PARSER_ERRORS) as exc:
        raise _damaged("PDF", exc) from exc
    return Extracted(title if isinstance(title, str) else None, text)


def _joined(pages: Iterable[str], max_chars: int) -> str:
    """Pages apart by an empty line; stops at the first page past ``max_chars``, so that a bomb is not unpacked."""
    texts, length = [], 0
    for page in pages:
        length += len(page)
        _check_length(length, max_chars)
        texts.append(page)
    return "\n\n".join(texts)


def _damaged(kind: str, exc: Exception) -> InvalidInput:
    return InvalidInput.of("content", f"is not a readable {kind} ({type(exc).__name__}: {exc})")


# --- DOCX ------------------------------------------------------------------------------------------------------


def _read_docx(content: bytes, _charset: str | None, max_chars: int) -> Extracted:
    docx = _library("docx")
    if content.startswith(OLE_MAGIC):
        raise InvalidInput.of("content", "is an encrypted document or an old .doc; save it as .docx without password")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise InvalidInput.of("content", f"unpacks to {unpacked} bytes, more than {MAX_UNPACKED_BYTES}")
        document = docx.Document(io.BytesIO(content))
        text = _joined(_docx_blocks(document.iter_inner_content()), max_chars)
        title = document.core_properties.title or _docx_heading(document.paragraphs)
    except InvalidInput:
        raise
    except PARSER_ERRORS as exc:
        raise _damaged("DOCX", exc) from exc
    except docx.opc.exceptions.OpcError as exc:
        raise _damaged("DOCX", exc) from exc
    return Extracted(title, text)


def _docx_heading(paragraphs: Iterable[Any]) -> str | None:
    """The first paragraph in a title's or top heading's style."""
    headings = (
        each.text for each in paragraphs if each.style is not None and each.style.name in ("Title", "Heading 1")
    )
    return next(headings, None)


def _docx_blocks(blocks: Iterable[Any]) -> Iterator[str]:
    """Paragraphs and tables in the document's order; a table's row is a line, its cells apart by ``|``."""
    for block in blocks:
        if hasattr(block, "rows"):
            yield "\n".join(" | ".join(_docx_cells(row)) for row in block.rows)
        elif block.text.strip():
            yield block.text


def _docx_cells(row: Any) -> Iterator[str]:
    """The text of each cell once: a merged cell is met again for every column it spans."""
    previous = None
    for cell in row.cells:
        if cell._tc is not previous:
            yield " ".join(" ".join(_docx_blocks(cell.iter_inner_content())).split())
        previous = cell._tc


def _library(name: str) -> ModuleType:
    """An optional library, loaded on first use."""
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise ConfigError(
            f"reading this kind of document needs {name}: install it by pip install 'vimbank[documents]'"
        ) from exc


READERS: Final[Mapping[str, Callable[[bytes, str | None, int], Extracted]]] = {
    "text/plain": _read_plain,
    "text/markdown": _read_markdown,
    "text/x-markdown": _read_markdown,
    "text/html": _read_html,
    "application/xhtml+xml": _read_html,
    "application/pdf": _read_pdf,
    MEDIA_TYPES[".docx"]: _read_docx,
}
