"""What the readers of statements share: a statement as it is read, and values made comparable. Pure."""

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["NUMBER_WORDS", "OTHERS", "Raw", "fold_value", "may_contain", "same_value", "value_tokens"]

OTHERS: Final = "*"
"""Attribute of a statement that ends a value whatever it is the value of: «switched from A to B»."""


class Raw(NamedTuple):
    """One reading of a clause. ``value`` None, only where ``positive`` is False: no value holds any more."""

    subject: str
    attribute: str
    value: str | None
    positive: bool = True
    current: bool = True


NUMBER_WORDS: Final = {
    word: number
    for number, words in (
        *enumerate(
            (
                ("zero", "零", "〇"),
                ("one", "一"),
                ("two", "两", "二", "俩"),
                ("three", "三", "仨"),
                ("four", "四"),
                ("five", "五"),
                ("six", "六"),
                ("seven", "七"),
                ("eight", "八"),
                ("nine", "九"),
                ("ten", "十"),
                ("eleven", "十一"),
                ("twelve", "十二"),
            )
        ),
        *zip(
            range(20, 100, 10),
            (
                ("twenty", "二十"),
                ("thirty", "三十"),
                ("forty", "四十"),
                ("fifty", "五十"),
                ("sixty", "六十"),
                ("seventy", "七十"),
                ("eighty", "八十"),
                ("ninety", "九十"),
            ),
            strict=True,
        ),
    )
    for word in words
}
"""Numbers that people write as words, in English and Chinese."""

_WIDE_WORDS: Final = (
    "europe asia africa america australia austria belgium brazil bulgaria canada chile china colombia croatia cyprus "
    "czechia denmark egypt england estonia finland france germany greece hungary iceland india indonesia iran iraq "
    "ireland israel italy japan kenya latvia lithuania malaysia mexico morocco netherlands nigeria norway pakistan "
    "peru philippines poland portugal romania russia scotland serbia slovakia slovenia spain sweden switzerland "
    "taiwan thailand tunisia turkey uk ukraine us usa vietnam wales california texas florida oregon washington "
    "colorado bavaria tuscany catalonia brittany provence "
    "中国 美国 英国 法国 德国 日本 韩国 加拿大 澳大利亚 澳洲 新西兰 意大利 西班牙 俄罗斯 印度 新加坡 "
    "泰国 欧洲 亚洲 非洲 广东 广西 浙江 江苏 山东 山西 河南 河北 湖南 湖北 四川 福建 "
    "安徽 江西 云南 贵州 陕西 甘肃 青海 辽宁 吉林 黑龙江 海南 台湾 内蒙古 新疆 西藏 宁夏 "
)
_WIDE: Final = frozenset(
    {
        *_WIDE_WORDS.split(),
        *("new zealand", "south africa", "south korea", "united states", "united kingdom", "czech republic"),
        *("new york state", "north carolina", "south carolina", "new jersey", "new mexico", "saudi arabia"),
        *(
            "office",
            "library",
            "university",
            "hospital",
            "bank",
            "school",
            "museum",
            "council",
            "station",
            "post office",
        ),
        *("airport", "factory", "theatre", "police", "church", "zoo", "government", "public sector"),
        *("医院", "学校", "银行", "大学", "公司", "政府", "工厂", "机关", "国企", "外企"),
    }
)
"""Values that may hold a narrower one: countries, regions, kinds of employers."""

_SPELLING: Final = {"color": "colour", "favorite": "favourite", "mom": "mum", "tv": "television"}
_LEADING: Final = re.compile(r"^(?:the|a|an) (?=\S)")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TOKEN: Final = re.compile(r"[^\s.,;:!?'\"()]+(?:[.@'][^\s.,;:!?'\"()]+)*")
_WEEKDAY: Final = re.compile(r"(mon|tues|wednes|thurs|fri|satur|sun)days\b")
_CJK: Final = re.compile(r"[\u3400-\u9fff]")


def fold_value(text: str) -> str:
    """``text`` as values are compared: NFKC, case folded, articles and end punctuation gone, numbers as digits."""
    folded = unicodedata.normalize("NFKC", text).replace("’", "'").casefold().strip(" \t.,;:!?。，！？“”\"'「」")
    folded = _WEEKDAY.sub(r"\1day", _THOUSANDS.sub("", _LEADING.sub("", folded, count=1)))
    if folded in NUMBER_WORDS:
        return str(NUMBER_WORDS[folded])
    return " ".join(str(NUMBER_WORDS.get(word, _SPELLING.get(word, word))) for word in folded.split())


@lru_cache(maxsize=4096)
def value_tokens(value: str) -> frozenset[str]:
    """The words of a folded value."""
    return frozenset(_TOKEN.findall(value))


def may_contain(one: str, other: str) -> bool:
    """Whether one value is a country or a kind of employer and the other is not: «Norway» and «Oslo» may both be so."""
    return (one in _WIDE) != (other in _WIDE)


def same_value(one: str, other: str) -> bool:
    """Whether two folded values may be the same thing: equal, or one a part of the other.

    «Oslo» and «Oslo, Norway» are told of one place, so neither replaces the other. Values with digits are parts of
    nothing: «5 may» is «may 5» and not «may».
    """
    if one == other:
        return True
    ones, others = value_tokens(one), value_tokens(other)
    if ones == others:
        return True
    if any(char.isdigit() for char in one + other):
        return False
    if _CJK.search(one) and _CJK.search(other):
        return one in other or other in one
    return bool(ones and others) and (ones <= others or others <= ones)
