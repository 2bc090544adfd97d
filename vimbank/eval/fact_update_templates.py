"""Sentences in which people tell facts and that they changed, for the generated set of fact updates.

``TUNING`` is what the rules of `vimbank.domain.statements` may be tried on: two lists, the second of which was written
before any rule and used for reporting until the rules were widened. What is reported now comes from
`vimbank.eval.fact_update_report`. All hold forms that the rules do not know.

A form is about a named person or thing where it has ``{s}``, else about the speaker, whom a question calls «the user»
or «我». ``{v}`` is the value told, ``{old}`` the one before it, ``{year}`` a year well past.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["FILLERS", "SIBLINGS", "TUNING", "Topic"]


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing to know of somebody, in one language, and how people put it.

    ``states``: it is so; ``updates``: it is so now, in place of ``{old}``; ``ended``: it is no longer so, without a
    new value; ``past``: it was so, long ago; ``traps``: the value is named but nothing is said to be so.
    ``many``: several values hold at a time. ``subjects``: names for ``{s}``. ``titles``: of texts that each tell of
    their own, so that one's class is not another's. ``several``: a person may have several of what it is about, so that
    a second value need not replace the first («my dog is called Rex», «my dog is called Miso»).
    """

    name: str
    language: str
    question: str
    subjects: Sequence[str]
    values: Sequence[str]
    states: Sequence[str]
    updates: Sequence[str] = ()
    ended: Sequence[str] = ()
    past: Sequence[str] = ()
    traps: Sequence[str] = ()
    many: bool = False
    titles: Sequence[str] = ()
    several: bool = False


FILLERS: Final = {
    "en": (
        "The train was late again this morning.",
        "Thanks for asking!",
        "It rained the whole weekend.",
        "Anyway, that is the news.",
    ),
    "zh": ("今天地铁特别挤。", "谢谢你问我！", "周末一直在下雨。", "反正就是这么回事。"),
}

SIBLINGS: Final = frozenset(
    {"my sister", "my brother", "my daughter", "my cousin", "我姐姐", "我哥哥", "我表弟", "我同桌"}
)
"""Subjects of whom the speaker may have several."""

_PEOPLE: Final = ("Marta", "Marten", "Priya", "Prisha", "Tom Baker", "Tom Barker", "Yusuf", "Joanne", "Joanna")
_PERSONS_ZH: Final = ("李明", "李敏", "王芳", "王刚", "张伟", "张薇", "陈静", "赵磊")
_CITIES: Final = ("Lisbon", "Oslo", "Porto", "Toronto", "Leipzig", "Cape Town", "Kyoto", "Galway", "Austin")
_CITIES_ZH: Final = ("成都", "杭州", "西安", "厦门", "大连", "昆明", "青岛", "苏州")
_FIRMS: Final = ("Siemens", "Nordea", "Volvo", "Spotify", "the City Library", "Maersk", "Deutsche Bank")
_FIRMS_ZH: Final = ("腾讯", "华为", "小米", "招商银行", "字节跳动", "京东")
_JOBS: Final = ("nurse", "plumber", "data analyst", "teacher", "chef", "paramedic", "translator")
_JOBS_ZH: Final = ("护士", "老师", "厨师", "会计", "程序员", "律师")
_PHONES: Final = ("555-0142", "0171 2290 88", "+47 912 44 310", "020 7946 0018", "555-0199")
_PHONES_ZH: Final = ("13800138000", "13911112222", "18600001111", "13577778888")
_PETS: Final = ("Biscuit", "Miso", "Luna", "Pepper", "Olaf")
_PETS_ZH: Final = ("豆豆", "团团", "小黑", "布丁", "可乐")
_DISHES: Final = ("ramen", "lasagne", "pad thai", "fish and chips", "moussaka", "dumplings")
_DISHES_ZH: Final = ("火锅", "饺子", "酸辣粉", "红烧肉", "小笼包")
_HOBBIES: Final = ("climbing", "crosswords", "techno", "jasmine tea", "horror films", "long train rides")
_HOBBIES_ZH: Final = ("爬山", "咖啡", "摇滚乐", "科幻小说", "打羽毛球", "看电影")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_DAYS_ZH: Final = ("周一", "周二", "周三", "周四", "周五")
_AGES: Final = ("29", "34", "41", "52", "63")
_COUNTS: Final = ("two", "three", "four", "5", "6")
_COUNTS_ZH: Final = ("两", "三", "四", "五")
_PRICES: Final = ("$1,200", "$1,350", "$980", "$1,500")
_PRICES_ZH: Final = ("3200元", "3500元", "4100元", "2800元")

_SECOND: Final = (
    Topic(
        name="residence",
        language="en",
        question="Where does {s} live now?",
        subjects=_PEOPLE,
        values=_CITIES,
        states=(
            "I live in {v}.",
            "I've been living in {v} for a while.",
            "Home is {v} for me.",
            "I'm based in {v}, mostly because of the schools.",
            "{s} lives in {v}.",
            "{s} lives over in {v} with two cats.",
            "You know {s}? Lives in {v}.",
        ),
        updates=(
            "We finally did it, I moved to {v} last week!",
            "I just relocated from {old} to {v}.",
            "I live in {v} now, {old} got too expensive.",
            "So I packed up my life in {old} and now I'm in {v}.",
            "{s} has moved to {v}.",
            "{s} left {old} and lives in {v} now.",
            "Turns out {s} is living in {v} these days.",
        ),
        ended=(
            "I don't live in {v} anymore.",
            "I moved out of {v}.",
            "{s} no longer lives in {v}.",
            "{s} isn't in {v} any longer.",
        ),
        past=(
            "I lived in {v} back in {year}.",
            "In {year} I was living in {v} for a semester.",
            "I grew up in {v}.",
            "{s} used to live in {v}.",
            "{s} spent {year} in {v}.",
        ),
        traps=(
            "I might move to {v} some day.",
            "Would you want to live in {v}?",
            "If I lived in {v} I'd cycle everywhere.",
            "My plan is to visit {v} next spring.",
            "{s} was thinking of moving to {v}.",
            "{s} is on holiday in {v}.",
        ),
    ),
    Topic(
        name="employer",
        language="en",
        question="Whom does {s} work for now?",
        subjects=_PEOPLE,
        values=_FIRMS,
        states=(
            "I work at {v}.",
            "I'm working for {v}, in the support team.",
            "My employer is {v}.",
            "{s} works for {v}.",
            "{s} has a job at {v}.",
        ),
        updates=(
            "I started at {v} this month.",
            "Big news: I quit {old} and joined {v}.",
            "I now work for {v}.",
            "I switched from {old} to {v}, same job, better pay.",
            "{s} recently joined {v}.",
            "{s} got a new job at {v}.",
            "{s} is working at {v} now.",
        ),
        ended=("I quit my job at {v}.", "I no longer work at {v}.", "{s} was laid off by {v}.", "{s} has left {v}."),
        past=(
            "I worked at {v} in {year}.",
            "My first job was at {v}.",
            "{s} used to work for {v}.",
            "Until {year} {s} worked at {v}.",
        ),
        traps=(
            "I applied to {v} yesterday.",
            "I'd love to work for {v}.",
            "{s} has an interview at {v} on Friday.",
            "{s} buys everything from {v}.",
        ),
    ),
    Topic(
        name="occupation",
        language="en",
        question="What is {s}'s job now?",
        subjects=_PEOPLE,
        values=_JOBS,
        states=("I'm a {v}.", "I work as a {v}.", "{s} is a {v}.", "{s} works as a {v} in a small town."),
        updates=(
            "I retrained and now I work as a {v}.",
            "I'm a {v} now.",
            "{s} became a {v}.",
            "{s} is now a {v}.",
            "{s} went from {old} to {v}, can you believe it?",
        ),
        ended=("I'm no longer a {v}.", "{s} doesn't work as a {v} any more."),
        past=("I was a {v} in {year}.", "{s} used to be a {v}.", "Years ago {s} worked as a {v}."),
        traps=("I always wanted to be a {v}.", "{s} is married to a {v}.", "{s} needs a {v} urgently."),
    ),
    Topic(
        name="phone",
        language="en",
        question="What is {s}'s phone number now?",
        subjects=_PEOPLE,
        values=_PHONES,
        states=(
            "My phone number is {v}.",
            "You can reach me on {v}.",
            "{s}'s phone number is {v}.",
            "{s}'s number: {v}",
        ),
        updates=(
            "My new number is {v}.",
            "I changed my phone number to {v}.",
            "Please use {v} from now on, that's my new number.",
            "{s}'s new phone number is {v}.",
            "{s}'s phone number has changed to {v}.",
        ),
        past=("My old phone number was {v}.", "{s}'s phone number used to be {v}."),
        traps=("Is {v} my phone number?", "{s} got a call from {v}."),
    ),
    Topic(
        name="age",
        language="en",
        question="How old is {s} now?",
        subjects=_PEOPLE,
        values=_AGES,
        states=("I'm {v} years old.", "I am {v}.", "{s} is {v}.", "{s} is {v} years old."),
        updates=("I turned {v} today.", "I'm {v} now, time flies.", "{s} just turned {v}.", "{s} is already {v}."),
        past=("I was {v} when we met.", "{s} was {v} in {year}."),
        traps=("I feel like I'm {v}.", "{s} has {v} followers."),
    ),
    Topic(
        name="pet",
        several=True,
        language="en",
        question="What is {s}'s dog called?",
        subjects=_PEOPLE,
        values=_PETS,
        states=(
            "My dog is called {v}.",
            "My dog's name is {v}.",
            "{s}'s dog is named {v}.",
            "{s} named the dog {v}.",
        ),
        updates=("We renamed my dog to {v}.", "My dog is called {v} now.", "{s}'s dog is now called {v}."),
        traps=("{v} is a silly name for a dog.", "{s} met a dog called {v}."),
    ),
    Topic(
        name="favourite",
        language="en",
        question="What is {s}'s favourite dish now?",
        subjects=_PEOPLE,
        values=_DISHES,
        states=(
            "My favourite dish is {v}.",
            "My favorite dish has always been {v}.",
            "{s}'s favourite dish is {v}.",
            "{s}'s favourite dish? Definitely {v}.",
        ),
        updates=(
            "My favourite dish is {v} these days.",
            "My new favourite dish is {v}.",
            "{s}'s favourite dish is now {v}.",
            "{s}'s favourite dish has changed from {old} to {v}.",
        ),
        past=("As a child my favourite dish was {v}.", "{s}'s favourite dish used to be {v}."),
        traps=("I had {v} for lunch.", "{s} burnt the {v} yesterday."),
    ),
    Topic(
        name="likes",
        language="en",
        question="What does {s} like?",
        subjects=_PEOPLE,
        values=_HOBBIES,
        states=("I like {v}.", "I really love {v}.", "I'm a big fan of {v}.", "{s} likes {v}.", "{s} is into {v}."),
        ended=(
            "I don't like {v} anymore.",
            "I can't stand {v} these days.",
            "{s} no longer likes {v}.",
            "{s} has gone off {v}.",
        ),
        past=("I used to like {v}.", "{s} liked {v} as a teenager."),
        traps=("Do you like {v}?", "{s} wonders why people like {v}."),
        many=True,
    ),
    Topic(
        name="meeting",
        language="en",
        question="On which day is the {s} now?",
        subjects=("planning meeting", "choir practice", "book club", "budget review", "team lunch"),
        values=_DAYS,
        states=("The {s} is on {v}.", "The {s} takes place every {v}.", "We have the {s} on {v}s."),
        updates=(
            "The {s} has been moved to {v}.",
            "The {s} is now on {v}.",
            "They shifted the {s} from {old} to {v}.",
            "The {s} moved from {old} to {v}.",
        ),
        past=("The {s} was on {v} in {year}.", "The {s} used to be on {v}."),
        traps=("Could we move the {s} to {v}?", "Maybe the {s} should be on {v}."),
    ),
    Topic(
        name="count",
        language="en",
        question="How many children does {s} have now?",
        subjects=_PEOPLE,
        values=_COUNTS,
        states=("I have {v} children.", "I've got {v} children.", "{s} has {v} children."),
        updates=("I have {v} children now.", "{s} has {v} children by now.", "With the baby {s} has {v} children."),
        past=("In {year} I had {v} children.", "{s} had {v} children back then."),
        traps=("I wish I had {v} children.", "{s} taught {v} children to swim."),
    ),
    Topic(
        name="rent",
        language="en",
        question="How much is {s}'s rent now?",
        subjects=_PEOPLE,
        values=_PRICES,
        states=("My rent is {v}.", "I pay {v} in rent.", "{s}'s rent is {v}."),
        updates=(
            "My rent went up to {v}.",
            "My rent is {v} now.",
            "{s}'s rent has been raised to {v}.",
            "{s}'s rent is now {v} a month.",
        ),
        past=("My rent was {v} in {year}.", "{s}'s rent used to be {v}."),
        traps=("I wonder whether {v} is a fair rent.", "{s} spent {v} on a sofa."),
    ),
    Topic(
        name="residence",
        language="zh",
        question="{s}现在住在哪里？",
        subjects=_PERSONS_ZH,
        values=_CITIES_ZH,
        states=(
            "我住在{v}。",
            "我家在{v}。",
            "我目前住在{v}，离公司很近。",
            "{s}住在{v}。",
            "{s}一直住在{v}。",
            "{s}的家在{v}。",
        ),
        updates=(
            "我上个月搬到{v}了。",
            "我现在住在{v}。",
            "我从{old}搬到了{v}。",
            "{s}搬去{v}了。",
            "{s}现在住在{v}。",
            "{s}离开{old}，搬到了{v}。",
        ),
        ended=("我不住在{v}了。", "我已经不在{v}住了。", "{s}不再住在{v}。", "{s}已经搬离{v}了。"),
        past=("我{year}年住在{v}。", "我以前住在{v}。", "{s}曾经住在{v}。", "{s}在{v}长大。"),
        traps=(
            "我想搬到{v}。",
            "如果我住在{v}就好了。",
            "你觉得{v}适合住吗？",
            "{s}打算搬到{v}。",
            "{s}在{v}旅游。",
        ),
    ),
    Topic(
        name="employer",
        language="zh",
        question="{s}现在在哪里工作？",
        subjects=_PERSONS_ZH,
        values=_FIRMS_ZH,
        states=("我在{v}工作。", "我在{v}上班，做技术支持。", "{s}在{v}工作。", "{s}是{v}的员工。"),
        updates=(
            "我跳槽到{v}了。",
            "我现在在{v}上班。",
            "{s}加入了{v}。",
            "{s}从{old}跳槽去了{v}。",
            "{s}如今在{v}工作。",
        ),
        ended=("我不在{v}工作了。", "我从{v}辞职了。", "{s}已经离开{v}了。", "{s}不再在{v}上班。"),
        past=("我{year}年在{v}工作。", "我以前在{v}上班。", "{s}曾在{v}工作过。", "{s}之前在{v}实习。"),
        traps=("我想去{v}工作。", "我昨天面试了{v}。", "{s}希望进{v}。", "{s}买了{v}的股票。"),
    ),
    Topic(
        name="occupation",
        language="zh",
        question="{s}现在做什么职业？",
        subjects=_PERSONS_ZH,
        values=_JOBS_ZH,
        states=("我是一名{v}。", "我的职业是{v}。", "{s}是{v}。", "{s}是个{v}，很忙。"),
        updates=("我现在是{v}。", "我改行当{v}了。", "{s}现在是一名{v}。", "{s}转行做了{v}。"),
        ended=("我不再是{v}了。", "{s}不当{v}了。"),
        past=("我以前是{v}。", "{s}{year}年是{v}。", "{s}当过{v}。"),
        traps=("我小时候想当{v}。", "{s}的朋友是{v}。", "{s}要找{v}。"),
    ),
    Topic(
        name="phone",
        language="zh",
        question="{s}现在的电话号码是多少？",
        subjects=_PERSONS_ZH,
        values=_PHONES_ZH,
        states=("我的电话是{v}。", "我的手机号是{v}。", "{s}的手机号是{v}。", "{s}的电话号码：{v}"),
        updates=(
            "我的手机号换成{v}了。",
            "我换号码了，新的手机号是{v}。",
            "{s}的手机号改成了{v}。",
            "{s}的新手机号是{v}。",
        ),
        past=("我以前的手机号是{v}。", "{s}原来的手机号是{v}。"),
        traps=("{v}是我的手机号吗？", "{s}接到{v}打来的电话。"),
    ),
    Topic(
        name="age",
        language="zh",
        question="{s}今年多大？",
        subjects=_PERSONS_ZH,
        values=_AGES,
        states=("我今年{v}岁。", "我{v}岁。", "{s}今年{v}岁。", "{s}{v}岁。"),
        updates=("我{v}岁了。", "我现在{v}岁。", "{s}已经{v}岁了。", "{s}刚满{v}岁。"),
        past=("{year}年我{v}岁。", "那时候{s}{v}岁。"),
        traps=("我感觉自己像{v}岁。", "{s}有{v}本书。"),
    ),
    Topic(
        name="pet",
        several=True,
        language="zh",
        question="{s}的狗叫什么名字？",
        subjects=_PERSONS_ZH,
        values=_PETS_ZH,
        states=("我的狗叫{v}。", "我家的狗名字叫{v}。", "{s}的狗叫{v}。"),
        updates=("我的狗现在叫{v}。", "我的狗改名叫{v}了。", "{s}的狗改名为{v}。"),
        traps=("{v}这个名字不适合狗。", "{s}遇到一只叫{v}的狗。"),
    ),
    Topic(
        name="favourite",
        language="zh",
        question="{s}现在最喜欢的菜是什么？",
        subjects=_PERSONS_ZH,
        values=_DISHES_ZH,
        states=("我最喜欢的菜是{v}。", "我最爱的菜是{v}。", "{s}最喜欢的菜是{v}。"),
        updates=("我现在最喜欢的菜是{v}。", "我最喜欢的菜变成{v}了。", "{s}最喜欢的菜现在是{v}。"),
        past=("我小时候最喜欢的菜是{v}。", "{s}以前最喜欢的菜是{v}。"),
        traps=("我中午吃了{v}。", "{s}昨天做{v}做糊了。"),
    ),
    Topic(
        name="likes",
        language="zh",
        question="{s}喜欢什么？",
        subjects=_PERSONS_ZH,
        values=_HOBBIES_ZH,
        states=("我喜欢{v}。", "我特别喜欢{v}。", "我对{v}很着迷。", "{s}喜欢{v}。", "{s}很喜欢{v}。"),
        ended=("我不喜欢{v}了。", "我现在讨厌{v}。", "{s}不再喜欢{v}。", "{s}对{v}没兴趣了。"),
        past=("我以前喜欢{v}。", "{s}小时候喜欢{v}。"),
        traps=("你喜欢{v}吗？", "{s}问大家喜不喜欢{v}。"),
        many=True,
    ),
    Topic(
        name="meeting",
        language="zh",
        question="{s}在哪天？",
        subjects=("项目例会", "合唱排练", "读书会", "预算评审"),
        values=_DAYS_ZH,
        states=("{s}在{v}。", "{s}的时间是{v}。", "{s}安排在{v}。"),
        updates=("{s}改到{v}了。", "{s}的时间改成{v}了。", "{s}从{old}挪到{v}。", "{s}现在安排在{v}。"),
        past=("{s}以前在{v}。", "{year}年{s}在{v}。"),
        traps=("{s}能不能改到{v}？", "{s}可能会改到{v}。"),
    ),
    Topic(
        name="rent",
        language="zh",
        question="{s}现在房租多少？",
        subjects=_PERSONS_ZH,
        values=_PRICES_ZH,
        states=("我的房租是{v}。", "我每个月房租{v}。", "{s}的房租是{v}。"),
        updates=("我的房租涨到{v}了。", "我的房租现在是{v}。", "{s}的房租涨到了{v}。", "{s}的房租降到{v}。"),
        past=("我{year}年的房租是{v}。", "{s}以前的房租是{v}。"),
        traps=("房租{v}贵不贵？", "{s}花{v}买了沙发。"),
    ),
    Topic(
        name="count",
        language="zh",
        question="{s}有几个孩子？",
        subjects=_PERSONS_ZH,
        values=_COUNTS_ZH,
        states=("我有{v}个孩子。", "{s}有{v}个孩子。"),
        updates=("我现在有{v}个孩子。", "我有{v}个孩子了。", "{s}现在有{v}个孩子了。"),
        past=("{year}年我有{v}个孩子。", "{s}那时有{v}个孩子。"),
        traps=("我希望有{v}个孩子。", "{s}教过{v}个孩子游泳。"),
    ),
)

_FIRST: Final = (
    Topic(
        name="residence",
        language="en",
        question="Where does {s} live now?",
        subjects=("Ana", "Anna", "Rob Miller", "my sister", "Dmitri"),
        values=("Rome", "Oulu", "Boston", "New York", "Graz", "Hanoi"),
        states=(
            "I live in {v}, near the river.",
            "I currently live in {v}.",
            "My home is in {v}.",
            "I have lived in {v} since 2019.",
            "{s} lives in {v}.",
            "{s} resides in {v}.",
            "{s}, who lives in {v}, says hi.",
        ),
        updates=(
            "I've just moved to {v}.",
            "I moved from {old} to {v}.",
            "Actually, I live in {v} now.",
            "{s} moved to {v} and loves it.",
            "{s} now lives in {v}.",
            "{s} traded {old} for {v}.",
        ),
        ended=("I no longer live in {v}.", "I moved away from {v}.", "{s} doesn't live in {v} anymore."),
        past=("I lived in {v} in {year}.", "{s} lived in {v} until {year}.", "I used to live in {v}."),
        traps=(
            "I want to live in {v}.",
            "Do you live in {v}?",
            "Maybe I will move to {v}.",
            "{s} said that I should live in {v}.",
            "{s} hopes to move to {v}.",
        ),
    ),
    Topic(
        name="employer",
        language="en",
        question="Whom does {s} work for now?",
        subjects=("Ana", "Anna", "Rob Miller", "my brother", "Dmitri"),
        values=("Google", "Nokia", "IKEA", "Acme Corp", "the post office"),
        states=("I work for {v}.", "I work at {v}, at the front desk.", "{s} works at {v}.", "{s} is employed by {v}."),
        updates=(
            "I left {old} and joined {v}.",
            "I just started working at {v}.",
            "I work at {v} now.",
            "{s} joined {v}.",
            "{s} now works at {v}.",
            "{s} signed with {v}.",
        ),
        ended=("I don't work at {v} anymore.", "{s} no longer works for {v}.", "I resigned from {v}."),
        past=("I worked for {v} in {year}.", "{s} used to work at {v}."),
        traps=("I would like to work at {v}.", "{s} might join {v}.", "Does {s} work at {v}?"),
    ),
    Topic(
        name="occupation",
        language="en",
        question="What is {s}'s job now?",
        subjects=("Ana", "Anna", "Rob Miller"),
        values=("lawyer", "baker", "software engineer", "pilot", "pharmacist"),
        states=("I am a {v}.", "My job is {v}.", "{s} is a {v}.", "{s} works as a {v}."),
        updates=("I became a {v}.", "I work as a {v} now.", "{s} is now working as a {v}."),
        ended=("I'm not a {v} anymore.", "{s} is no longer a {v}."),
        past=("I used to be a {v}.", "{s} was a {v} until {year}."),
        traps=("I want to become a {v}.", "{s} looks like a {v}."),
    ),
    Topic(
        name="email",
        language="en",
        question="What is {s}'s email address now?",
        subjects=("Ana", "Anna", "Rob Miller", "my landlord"),
        values=("a.b@mail.example", "ana@post.example", "r.m@work.example", "info@home.example"),
        states=("My email is {v}.", "My email address is {v}.", "{s}'s email address is {v}."),
        updates=("My new email address is {v}.", "My email has changed to {v}.", "{s}'s email address is now {v}."),
        past=("My email used to be {v}.", "{s}'s old email was {v}."),
        traps=("Is my email {v}?", "{s} wrote to {v}."),
    ),
    Topic(
        name="favourite",
        language="en",
        question="What is {s}'s favourite colour now?",
        subjects=("Ana", "Anna", "Rob Miller", "my daughter"),
        values=("blue", "dark green", "orange", "red"),
        states=("My favourite colour is {v}.", "My favorite color is {v}.", "{s}'s favourite colour is {v}."),
        updates=("My favourite colour is now {v}.", "{s}'s favourite colour changed from {old} to {v}."),
        past=("My favourite colour was {v} in {year}.", "{s}'s favourite colour used to be {v}."),
        traps=("Isn't {v} a nice colour?", "{s} painted the wall {v}."),
    ),
    Topic(
        name="likes",
        language="en",
        question="What does {s} like?",
        subjects=("Ana", "Anna", "Rob Miller", "my dad"),
        values=("tea", "jazz", "swimming", "old maps"),
        states=("I like {v}.", "I enjoy {v}.", "I love {v}.", "{s} loves {v}.", "{s} enjoys {v}."),
        ended=("I no longer like {v}.", "I hate {v} now.", "{s} doesn't like {v} anymore."),
        past=("I used to love {v}.", "{s} used to like {v}."),
        traps=("Who likes {v}?", "{s} thinks that I like {v}."),
        many=True,
    ),
    Topic(
        name="deadline",
        language="en",
        question="When is the {s} now?",
        subjects=("project deadline", "grant deadline", "thesis deadline", "tax deadline"),
        values=("5 May", "12 May", "1 June", "June 20"),
        states=("The {s} is {v}.", "The {s} is on {v}."),
        updates=(
            "The {s} has been moved to {v}.",
            "The {s} was extended to {v}.",
            "The {s} is now {v}.",
            "The {s} has changed from {old} to {v}.",
        ),
        past=("The {s} used to be {v}.", "The {s} was {v} in {year}."),
        traps=("Is the {s} {v}?", "I think the {s} might move to {v}."),
    ),
    Topic(
        name="count",
        language="en",
        question="How many cats does {s} have now?",
        subjects=("Ana", "Anna", "Rob Miller"),
        values=("2", "three", "4", "five"),
        states=("I have {v} cats.", "{s} has {v} cats."),
        updates=("I now have {v} cats.", "{s} now has {v} cats."),
        past=("I had {v} cats in {year}.", "{s} used to have {v} cats."),
        traps=("I want to have {v} cats.", "{s} saw {v} cats."),
    ),
    Topic(
        name="residence",
        language="zh",
        question="{s}现在住在哪里？",
        subjects=("小王", "小汪", "刘洋", "我姐姐"),
        values=("北京", "上海", "广州", "南京", "深圳"),
        states=("我住在{v}。", "我现在住{v}。", "我家住{v}。", "{s}住在{v}。", "{s}定居在{v}。"),
        updates=("我搬到{v}了。", "我搬去了{v}。", "我已经从{old}搬到{v}。", "{s}最近搬到了{v}。", "{s}目前住在{v}。"),
        ended=("我不再住在{v}了。", "{s}不住在{v}了。"),
        past=("我曾经住在{v}。", "{s}以前住在{v}。", "{year}年{s}住在{v}。"),
        traps=("我可能会搬到{v}。", "你住在{v}吗？", "{s}说他想住在{v}。"),
    ),
    Topic(
        name="employer",
        language="zh",
        question="{s}现在在哪里工作？",
        subjects=("小王", "小汪", "刘洋", "我哥哥"),
        values=("百度", "阿里巴巴", "中国银行", "人民医院"),
        states=("我在{v}工作。", "我在{v}上班。", "{s}在{v}上班。", "{s}在{v}工作。"),
        updates=("我现在在{v}工作。", "我加入了{v}。", "{s}现在在{v}上班。", "{s}跳槽到了{v}。"),
        ended=("我不再在{v}工作。", "{s}从{v}离职了。"),
        past=("我以前在{v}工作。", "{s}曾经在{v}工作。"),
        traps=("我希望在{v}工作。", "{s}要去{v}面试。"),
    ),
    Topic(
        name="name",
        several=True,
        language="zh",
        question="{s}的猫叫什么名字？",
        subjects=("小王", "小汪", "刘洋"),
        values=("咪咪", "花花", "雪球", "橘子"),
        states=("我的猫叫{v}。", "我的猫的名字是{v}。", "{s}的猫叫{v}。"),
        updates=("我的猫改名叫{v}了。", "{s}的猫现在叫{v}。"),
        traps=("{s}看到一只猫叫{v}。", "叫{v}好听吗？"),
    ),
    Topic(
        name="age",
        language="zh",
        question="{s}今年多大？",
        subjects=("小王", "小汪", "刘洋", "我妈妈"),
        values=("25", "三十", "31", "42"),
        states=("我今年{v}岁。", "{s}今年{v}岁。"),
        updates=("我今年{v}岁了。", "{s}已经{v}岁了。"),
        past=("我{v}岁的时候很瘦。", "{s}当时{v}岁。"),
        traps=("我看起来像{v}岁。", "{s}的狗{v}岁吗？"),
    ),
    Topic(
        name="likes",
        language="zh",
        question="{s}喜欢什么？",
        subjects=("小王", "小汪", "刘洋"),
        values=("喝茶", "游泳", "京剧", "下象棋"),
        states=("我喜欢{v}。", "我很喜欢{v}。", "{s}喜欢{v}。", "{s}爱{v}。"),
        ended=("我不再喜欢{v}。", "{s}不喜欢{v}了。"),
        past=("我以前很喜欢{v}。", "{s}曾经喜欢{v}。"),
        traps=("谁喜欢{v}？", "{s}以为我喜欢{v}。"),
        many=True,
    ),
    Topic(
        name="favourite",
        language="zh",
        question="{s}现在最喜欢的颜色是什么？",
        subjects=("小王", "小汪", "刘洋"),
        values=("蓝色", "红色", "绿色", "白色"),
        states=("我最喜欢的颜色是{v}。", "{s}最喜欢的颜色是{v}。"),
        updates=("我现在最喜欢的颜色是{v}。", "{s}最喜欢的颜色变成了{v}。"),
        past=("我以前最喜欢的颜色是{v}。", "{s}小时候最喜欢的颜色是{v}。"),
        traps=("{v}好看吗？", "{s}买了{v}的车。"),
    ),
    Topic(
        name="password",
        language="zh",
        question="{s}现在的密码是什么？",
        subjects=("小王", "小汪", "办公室"),
        values=("8842", "abc123", "9901", "home77"),
        states=("我的WiFi密码是{v}。", "{s}的WiFi密码是{v}。"),
        updates=("我的WiFi密码改成了{v}。", "{s}的WiFi密码现在是{v}。", "{s}的WiFi密码换成{v}了。"),
        past=("我以前的WiFi密码是{v}。", "{s}原来的WiFi密码是{v}。"),
        traps=("WiFi密码是{v}吗？", "{s}忘了密码{v}。"),
    ),
)

TUNING: Final = _FIRST + _SECOND
