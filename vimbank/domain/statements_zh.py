"""Statements in Chinese clauses: a subject at the beginning of the clause, then one of the predicates below. Pure.

A name has no border in Chinese: the shortest beginning of two to four characters counts that a predicate follows, and
a name that holds a character of grammar (我, 的, 想, 在 ...) is none.
"""

import re
from typing import Final

from vimbank.domain.statement_values import NUMBER_WORDS, Raw, fold_value

__all__ = ["read_chinese"]

_MAX_CLAUSE_CHARS: Final = 60
_HAN: Final = r"[\u3400-\u9fff]"
_ADVERB: Final = (
    r"(?:现在|目前|如今|眼下|最近|刚刚|刚|已经|已|终于|今年|上个月|上周|上星期|昨天|前天|今天|这个月|去年|一直|也|都|"
    r"正|就|又|还|仍然|确实|其实|真的|特别|非常|很|超级|超|最终|后来|然后|一家|全家)"
)
_ADVERBS: Final = _ADVERB + "*"
_PAST: Final = (
    r"以前|从前|曾经|曾|过去|之前|原来|原先|小时候|当时|那时候?|早年|年轻时|上大学时|(?<!从)(?<!自)\d{4}年|的时候"
)
_PAST_IN: Final = re.compile(_PAST)
_BEFORE: Final = rf"(?:(?:{_PAST})(?:的)?)*"
_UNSURE: Final = re.compile(
    r"如果|要是|假如|万一|可能|也许|或许|大概|希望|打算|计划|准备|考虑|梦想|觉得|以为|认为|感觉|好像|似乎|听说|据说|"
    r"(?<!小)说(?!唱)|(?<!思)(?<!理)想(?!象)|是否|是不是|能不能|要不要|问|好不好|将来|将要|应该|[“”「」]"
)
_QUESTION: Final = re.compile(r"[?？]|[吗呢吧]$|谁|什么|哪|多少")
_CLAUSES: Final = re.compile(r"[，,；;]\s*|\s{2,}")
_TAIL: Final = re.compile(r"(?:了|啦|呀|啊|哦|呢|的时候|而已)+$")
_KIN: Final = (
    "妈妈|爸爸|母亲|父亲|妈|爸|老婆|妻子|太太|老公|丈夫|女朋友|男朋友|老板|经理|房东|姐姐|哥哥|妹妹|弟弟|儿子|女儿|"
    "奶奶|爷爷|外婆|外公|室友|狗|猫|公司|兔子|鹦鹉|仓鼠|车"
)
_NOT_NAMES: Final = re.compile(
    r"[我你您他她它们的了在是不想很都也就还要可说问打希望觉以为被把去没和与跟给对从这那谁哪每各另怎叫住]|如果|以前|现在|大家|"
    r"有人|别人|今年|去年|刚刚|已经|目前|现在|朋友|同事|邻居|今天|昨天|明天|反正|谢谢|周末|一直|目前|最近"
)
_SUBJECT: Final = (
    rf"(?:(?P<me>我)(?:家?的?(?P<kin>{_KIN}))?|(?P<pronoun>[他她它])|(?P<user>用户)|"
    rf"(?P<name>{_HAN}{{2,4}}?|[A-Z][A-Za-z]+)(?:家?的(?P<thing>{_KIN}))?)"
)
_PLACE: Final = r"(?P<v>[\u3400-\u9fffA-Za-z·]{2,12}?)"
_DAY: Final = r"(?:每?(?:周|星期|礼拜)[一二三四五六日天]|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]|\d{4}-\d{2}-\d{2})"
_HOUR: Final = (
    r"(?:(?:早上|上午|中午|下午|晚上)?(?:\d{1,2}|[一二两三四五六七八九十]{1,2})(?:点(?:半|\d{1,2}分?)?|[:：]\d{2}))"
)
_WHEN: Final = rf"(?:(?P<day>{_DAY})|(?P<hour>{_HOUR}))"
_NUMBER: Final = (
    rf"(?:\d{{1,3}}|[{''.join(word for word in NUMBER_WORDS if len(word) == 1 and not word.isascii())}]{{1,3}})"
)
_JOBS: Final = (
    "医生|护士|教师|老师|教授|律师|会计|厨师|司机|工程师|程序员|设计师|记者|编辑|作家|演员|歌手|画家|警察|军人|法官|翻译|"
    "导游|导演|摄影师|建筑师|药剂师|牙医|兽医|经理|秘书|销售|店员|服务员|快递员|外卖员|保安|农民|工人|电工|木工|理发师|"
    "飞行员|空姐|研究员|科学家|学生|研究生|公务员|分析师|咨询师|顾问|教练|运动员|裁缝|面包师|心理医生|产品经理|项目经理"
)
_JOB: Final = rf"(?:[^，。的]{{2,8}}的)?(?P<v>[\u3400-\u9fffA-Za-z]{{0,4}}?(?:{_JOBS}))"
_PLACES: Final = re.compile(
    r"^(?:北京|上海|天津|重庆|广州|深圳|成都|杭州|武汉|西安|南京|苏州|长沙|郑州|青岛|大连|宁波|厦门|福州|合肥|济南|昆明|"
    r"沈阳|哈尔滨|长春|石家庄|太原|南昌|贵阳|南宁|海口|兰州|西宁|银川|拉萨|乌鲁木齐|呼和浩特|香港|澳门|台北|东京|纽约|"
    r"伦敦|巴黎|家|家里|外地|国外|外面|这里|那里|这儿|那儿|公司|办公室|线上|.*[省市区县国])$"
)
_NUMERIC: Final = "房租|租金|工资|月薪|年薪|体重|身高|价格|人口|年龄"
_NOUN: Final = (
    rf"(?P<noun>最(?:喜欢|爱)(?:吃|喝|看|听|玩)?的{_HAN}{{1,4}}?|手机号码?|电话号码?|联系电话|电话|号码|微信号?|邮箱(?:地址)?|"
    rf"(?:家庭)?住址|地址|[A-Za-z]*[- ]?(?:{_HAN}{{2}})?密码|{_NUMERIC}|生日|职业|名字|网名|昵称|老家|国籍|"
    r"专业|血型|市长|首都|总统)"
)
_IS: Final = r"(?:现在|目前|如今|已经|已|还)*(?:是|为|叫|：|:)(?:现在)?"
_CHANGED: Final = (
    r"(?:现在|目前|如今|已经|已|最近|刚刚|刚|又|都|也)*(?:从(?P<old>[^到成为]{1,12}?))?(?:被)?"
    r"(?:改|换|变|涨|升|降|更新|更改|修改|调整|提高|降低|挪|移|推迟|提前|延期|延长|安排)(?:成|为|到|在|至)(?:了)?"
)

_RULES: Final = [
    (re.compile(pattern + "$"), attribute, positive)
    for pattern, attribute, positive in (
        (rf"{_ADVERBS}(?:居住在|定居在|定居|住在|住){_PLACE}", "residence", True),
        (rf"家{_ADVERBS}(?:在|住在|住){_PLACE}", "residence", True),
        (rf"的家{_ADVERBS}在{_PLACE}", "residence", True),
        (
            rf"{_ADVERBS}(?:从(?P<old>{_HAN}{{2,8}}?))?{_ADVERBS}搬(?:家)?(?:到|去|回|进|来)了?{_PLACE}(?:去|来|住|生活|工作|上班)?",
            "residence",
            True,
        ),
        (rf"{_ADVERBS}(?:不再|不)(?:居住在|住在|住){_PLACE}", "residence", False),
        (rf"{_ADVERBS}(?:不再|不)在{_PLACE}住", "residence", False),
        (rf"{_ADVERBS}(?:搬离|搬出)了?{_PLACE}", "residence", False),
        (rf"{_ADVERBS}在(?P<v>[^，。在]{{2,12}}?)(?:工作|上班|任职)", "employer", True),
        (rf"{_ADVERBS}(?:加入|入职)了?(?P<v>[^，。]{{2,12}}?)(?:公司|工作|上班)?", "employer", True),
        (rf"{_ADVERBS}(?:从[^，。]{{2,8}}?)?跳槽(?:到|去|进)了?(?P<v>[^，。]{{2,12}}?)", "employer", True),
        (rf"{_ADVERBS}(?:不再|不)在(?P<v>[^，。]{{2,12}}?)(?:工作|上班|任职|干)", "employer", False),
        (rf"{_ADVERBS}从(?P<v>[^，。]{{2,12}}?)(?:辞职|离职|退休|辞去工作)", "employer", False),
        (rf"{_ADVERBS}(?:不再是|不是|不当|不做|不再当|不再做)(?:一名|一个|一位|个)?{_JOB}", "occupation", False),
        (rf"{_ADVERBS}(?:是|当上|当|成为|成)了?(?:一名|一个|一位|名|个|位)?{_JOB}", "occupation", True),
        (rf"{_ADVERBS}(?:改行|转行)(?:当|做|成为|成)?了?(?:一名|一个|一位|名|个|位)?{_JOB}", "occupation", True),
        (rf"{_ADVERBS}(?:快)?(?:满|有)?(?P<v>{_NUMBER})周?岁", "age", True),
        (
            rf"(?:的?名字)?{_ADVERBS}(?:名字叫|名叫|叫做|改名叫|改名为|叫|是|为)(?P<v>{_HAN}{{2,4}}|[A-Z][a-z]+)",
            "name",
            True,
        ),
        (rf"{_ADVERBS}(?:不再|不)(?:喜欢|爱|喜爱)(?P<v>[^，。]{{1,12}}?)", "likes", False),
        (rf"{_ADVERBS}(?:讨厌|厌恶|受不了)(?P<v>[^，。]{{1,12}}?)", "likes", False),
        (rf"{_ADVERBS}(?:喜欢|喜爱|热爱|爱上|爱)了?(?P<v>[^，。]{{1,12}}?)", "likes", True),
        (rf"{_ADVERBS}对(?P<v>[^，。]{{1,8}}?)(?:不再|不)过敏", "allergy", False),
        (rf"{_ADVERBS}对(?P<v>[^，。]{{1,8}}?)过敏", "allergy", True),
        (rf"{_ADVERBS}(?:结婚|已婚)", "marital status=married", True),
        (rf"{_ADVERBS}(?:离婚|离异)", "marital status=divorced", True),
        (rf"{_ADVERBS}(?:单身)", "marital status=single", True),
        (rf"{_ADVERBS}有(?P<v>{_NUMBER})(?:个|只|条|辆|套|台|匹|位|名)(?P<noun>{_HAN}{{1,4}})", "count", True),
    )
]
_HEAD: Final = re.compile(
    rf"(?P<time>(?:从?\d{{4}}年(?:起|以来|开始)?|{_PAST}|{_ADVERB}))*{_SUBJECT}{_BEFORE}(?P<rest>.+)$"
)
_OWNED: Final = re.compile(
    rf"{_BEFORE}{_ADVERBS}(?:(?P<me>我)(?:家?的(?P<kin>{_KIN}))?|(?P<pronoun>[他她])|(?P<name>{_HAN}{{2,4}}?|[A-Z][A-Za-z]+))?"
    rf"(?:家)?(?:每个?月)?(?P<past>{_BEFORE}){_ADVERBS}的?(?P<q>新的?|旧的?|老的?|{_PAST})?的?{_NOUN}(?P<copula>{_CHANGED}|{_IS})(?P<v>.+)$"
)
_EVENT: Final = re.compile(
    rf"(?P<thing>{_HAN}{{1,8}}?(?:会|会议|例会|排练|评审|课|聚会|培训|比赛|截止日期|截止时间|考试|面试|预约))(?:的?时间|的?日期)?"
    rf"(?P<past>{_BEFORE})(?:现在|目前|已经|已)*(?:是|在|定在|安排在|{_CHANGED}){_WHEN}(?:举行|进行|开)?$"
)
_DOINGS: Final = ("工作", "上班", "上学", "读书", "出差", "旅游", "度假", "玩", "过")
_CURRENCY: Final = re.compile(r"[¥￥]?\s?([\d,]+(?:\.\d+)?)\s*(万|千)?")


def read_chinese(sentence: str, *, me: str, last: str | None) -> tuple[list[Raw], int, str | None]:
    """The statements of one sentence.

    Args:    me: who says «我».  last: whom «他» and «她» mean, None where unclear.
    Returns: the statements; how many clauses said something that was not read; the person named last.
    """
    text = sentence.strip(" 。！!.")
    if _QUESTION.search(text):
        return [], 1, last
    found: list[Raw] = []
    unread = 0
    subject: str | None = None
    for clause in _CLAUSES.split(text):
        if len(clause) > _MAX_CLAUSE_CHARS:
            unread += 1
            continue
        if _UNSURE.search(clause):
            return found, unread + 1, last
        read, subject = _read_clause(clause.strip(), me=me, last=last, carried=subject)
        if subject is not None and not subject.startswith(me):
            last = subject
        found.extend(read)
        unread += not read and len(clause) > 2
    return found, unread, last


def _read_clause(clause: str, *, me: str, last: str | None, carried: str | None) -> tuple[list[Raw], str | None]:
    bare = _TAIL.sub("", clause)
    if (match := _EVENT.match(bare)) and not _NOT_NAMES.search(match["thing"]):
        return [_dated(match)], carried
    if match := _OWNED.match(bare):
        subject = _subject(match, match["kin"], me=me, last=last, carried=carried)
        if subject is not None:
            read = _held(match, subject, past=bool(_PAST_IN.search(clause)))
            if read:
                return read, subject
    if (match := _HEAD.match(bare)) and (read := _headed(match, clause, me=me, last=last)):
        return read, read[0].subject
    if carried is not None:
        return _predicates(bare, clause, carried), carried
    subject = me if clause.startswith("我") else None
    return [], subject


def _headed(match: "re.Match[str]", clause: str, *, me: str, last: str | None) -> list[Raw]:
    """Names have no border: longer beginnings are tried until a predicate follows."""
    name: str | None = match["name"]
    if name is None or name[0].isascii():
        subject = _subject(match, match["kin"] or match["thing"], me=me, last=last, carried=None)
        return [] if subject is None else _predicates(match["rest"], clause, subject)
    start = match.start("name")
    text = match.string
    for length in (2, 3, 4):
        candidate = text[start : start + length]
        if len(candidate) < length or _NOT_NAMES.search(candidate):
            return []
        rest = text[start + length :]
        subject = f"{me}'s {candidate}" if candidate in _KIN.split("|") else candidate
        if thing := _THING.match(rest):
            rest, subject = rest[thing.end() :], f"{candidate}'s {thing[1]}"
        read = _predicates(_BEFORE_AT.sub("", rest, count=1), clause, subject)
        if read:
            return read
    return []


_THING: Final = re.compile(rf"家?的({_KIN})")
_BEFORE_AT: Final = re.compile(rf"^{_BEFORE}")


def _predicates(rest: str, clause: str, subject: str) -> list[Raw]:
    current = not _PAST_IN.search(clause) and not rest.endswith("过")
    for pattern, attribute, positive in _RULES:
        if match := pattern.match(rest):
            return _said(match, attribute, subject, positive=positive, current=current)
    return []


def _said(match: "re.Match[str]", attribute: str, subject: str, *, positive: bool, current: bool) -> list[Raw]:
    if "=" in attribute:
        name, value = attribute.split("=")
        return [Raw(subject, name, value, positive, current)]
    value = match["v"].removesuffix("了")
    if attribute == "count":
        attribute = f"count of {match['noun']}"
    if attribute == "employer" and _PLACES.match(value):
        attribute = "workplace"
    if attribute == "residence" and value.endswith(_DOINGS):
        return []
    if attribute == "residence" and value in {"这里", "那里", "家里", "学校", "宿舍", "酒店", "附近", "一起", "医院"}:
        return []
    if value[0] in "你我他她它这那谁":
        return []
    if attribute == "name" and (value in _JOBS.split("|") or not _may_be_named(match)):
        return []
    return [Raw(subject, attribute, _number(value) if attribute in {"age"} else fold_value(value), positive, current)]


def _may_be_named(match: "re.Match[str]") -> bool:
    """«叫» names anybody; «是» names only where the word 名字 stands before it."""
    said = match[0][: match.start("v") - match.start()]
    return "叫" in said or "名" in said


def _number(text: str) -> str:
    if text.isdigit():
        return text
    if "十" in text:
        tens, _, ones = text.partition("十")
        return str(NUMBER_WORDS.get(tens, 1) * 10 + NUMBER_WORDS.get(ones, 0))
    return fold_value(text)


def _subject(
    match: "re.Match[str]", thing: str | None, *, me: str, last: str | None, carried: str | None
) -> str | None:
    groups = match.groupdict()
    if groups.get("me"):
        owner: str | None = me
    elif groups.get("user"):
        owner = "@user"
    elif groups.get("pronoun"):
        owner = last
    elif name := groups.get("name"):
        owner = None if _NOT_NAMES.search(name) else fold_value(name)
    else:
        owner = carried
    return owner if owner is None or not thing else f"{owner}'s {thing}"


def _held(match: "re.Match[str]", subject: str, *, past: bool) -> list[Raw]:
    noun, text = match["noun"], match["v"].strip()
    value: str | None = text
    attribute = noun
    if "密码" in noun:
        attribute = noun.lower()
        value = text if re.fullmatch(r"[!-~]+", text) else None
    elif noun.startswith(("手机", "电话", "号码", "联系电话")):
        attribute = "phone"
        value = "".join(filter(str.isdigit, text)) if re.fullmatch(r"\+?[\d\s-]{4,}", text) else None
    elif noun.startswith("邮箱"):
        attribute, value = "email", text.casefold() if "@" in text else None
    elif noun in _NUMERIC.split("|"):
        attribute = {"租金": "rent", "房租": "rent"}.get(noun, noun)
        number = _CURRENCY.match(text)
        value = number[1].replace(",", "") + (number[2] or "") if number else None
    elif noun.startswith("最"):
        attribute = "favourite " + noun.split("的", 1)[1]
    elif noun == "职业":
        attribute, value = "occupation", re.sub(r"^(?:一名|一个|一位|名|个|位)", "", text)
    elif noun == "名字":
        attribute = "name"
    if not value or len(value) > 30 or value[0] in "不没我你他她这那很":
        return []
    old = (match["q"] or "")[:1] in {"旧", "老"}
    return [Raw(subject, attribute, fold_value(value), current=not past and not old)]


def _dated(match: "re.Match[str]") -> Raw:
    current = not match["past"]
    day = match["day"]
    if day:
        day = day.removeprefix("每").replace("星期", "周").replace("礼拜", "周").replace("号", "日")
        return Raw(f"the {match['thing']}", "day", "周日" if day == "周天" else day, current=current)
    return Raw(f"the {match['thing']}", "hour", match["hour"], current=current)
