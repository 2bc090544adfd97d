"""Names of attributes, and values in the form that an attribute asks for: a number, an address, a name. Pure."""

import re
from typing import Final

from vimbank.domain.statement_values import fold_value
from vimbank.domain.statements_en.phrases import (
    DAY,
    DIGITS,
    HEADS,
    NUMBER,
    NUMERIC,
    OFFICES,
    PEOPLE,
    PROPER,
    TAIL,
    VAGUE,
)

__all__ = ["MAIL", "PHONE", "attribute_name", "fold_date", "typed_value"]

MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PHONE: Final = re.compile(r"\+?\d[\d\s()./-]{2,}\d")
_AMOUNT: Final = re.compile(rf"(?:[$€£¥]\s?)?(\d[\d,.]*\d|\d)(?:\s?([$€£¥]|\w+))?|({NUMBER})\b")
_CODE: Final = re.compile(r"(?=\S*[\dA-Z\W_])(\S+)")
_PLAIN_KINDS: Final = frozenset({"personal", "private", "own", "main"})
_SYNONYMS: Final = (
    ("phone number", "phone"),
    ("mobile number", "phone"),
    ("cell number", "phone"),
    ("cell phone", "phone"),
    ("mobile phone", "phone"),
    ("telephone number", "phone"),
    ("telephone", "phone"),
    ("mobile", "phone"),
    ("cell", "phone"),
    ("number", "phone"),
    ("email address", "email"),
    ("email", "email"),
    ("home address", "address"),
    ("profession", "occupation"),
    ("job", "occupation"),
    ("home", "residence"),
    ("monthly rent", "rent"),
    ("car", "vehicle"),
)


def attribute_name(noun: str) -> str:
    """One name for each attribute, however it is called."""
    folded = fold_value(noun).replace("e-mail", "email")
    if folded.startswith("favourite"):
        return folded
    for last, name in _SYNONYMS:
        if folded == last or folded.endswith(" " + last):
            kind = folded[: -len(last)].strip()  # «work» of «work phone number»
            return name if not kind or kind in _PLAIN_KINDS else f"{kind} {name}"
    return folded


def typed_value(noun: str, text: str) -> tuple[str, str] | None:
    """(attribute, value), where the text has the form that a value of the noun has, else None."""
    attribute = attribute_name(noun)
    last = attribute.split()[-1]
    text = text.strip()
    value: str | None = None
    if attribute == "phone" or last in DIGITS.split("|"):
        value = "".join(filter(str.isdigit, match[0])) if (match := PHONE.match(text)) else None
    elif attribute == "email":
        value = match[0].casefold() if (match := MAIL.match(text)) else None
    elif last in NUMERIC.split("|"):
        value = fold_value(match[1] or match[3]).replace(",", "") if (match := _AMOUNT.match(text)) else None
    elif last in {"code", "password", "passcode", "username", "login", "handle"}:
        value = match[1].rstrip(".!,") if (match := _CODE.match(text)) else None
    elif attribute in {
        "name",
        "nickname",
        "surname",
        "employer",
        "residence",
        *PEOPLE.split("|"),
        *OFFICES.split("|"),
    }:
        match = re.match(r"(?:in |at )?" + f"({PROPER})", text)
        value = fold_value(match[1]) if match else None
    elif attribute == "vehicle":
        match = re.match(rf"(?:an? |the )?({PROPER})$", TAIL.sub("", text))
        value = fold_value(match[1]) if match else None
    elif attribute == "occupation":
        words = fold_value(TAIL.sub("", text)).split()
        value = " ".join(words) if words and len(words) <= 3 and words[-1] in HEADS else None
    elif last in {"deadline", "birthday"}:
        match = re.match(rf"(?:on |by )?(?i:({DAY}))", text)
        value = fold_date(match[1]) if match else None
    else:
        words = fold_value(TAIL.sub("", text)).split()
        value = " ".join(words) if words and len(words) <= 5 and words[0] not in VAGUE else None
    return None if not value else (attribute, value)


def fold_date(text: str) -> str:
    """A date as it is compared: «1st of May» is «1 may»."""
    return re.sub(r"(?<=\d)(?:st|nd|rd|th)|\bof\b ?", "", fold_value(text))
