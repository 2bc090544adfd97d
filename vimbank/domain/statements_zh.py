"""Statements in Chinese clauses: a subject at the beginning of the clause, then one of the predicates below. Pure.

A name has no border in Chinese: the shortest beginning of two to four characters counts that a predicate follows, and
a name that holds a character of grammar (我, 的, 想, 在 ...) is none.
"""

import re
from typing import Final

from vimbank.domain.statement_values import NUMBER_WORDS, OTHERS, Raw, fold_value

__all__ = ["read_chinese"]

_MAX_CLAUSE_CHARS: Final = 60
_HAN: Final = r"[\u3400-\u9fff]"
_ADVERB: Final = (
    r"(?:现在|目前|如今|眼下|最近|刚刚|刚|已经|已|终于|今年|上个月|上周|上星期|昨天|前天|今天|这个月|去年|一直|也|都|"
    r"正|就|又|还|仍然|确实|其实|真的|特别|非常|很|超级|超|最终|后来|然后|一家|全家|们全家|终于|挺|蛮|比较|平时|平常|"
    r"从此|以后|今后|近来|这周|本周|上个?月|上个?星期|半年前|以来|完全|彻底|再也|总算)"
)
_ADVERBS: Final = _ADVERB + "*"
_PAST: Final = (
    r"以前|从前|曾经|曾|过去|之前|原来|原先|小时候|当时|那时候?|早年|年轻时|上大学时|(?<!从)(?<!自)\d{4}年|的时候"
)
_PAST_IN: Final = re.compile(_PAST)
_BEFORE: Final = rf"(?:(?:{_PAST})(?:的)?)*"
_UNSURE: Final = re.compile(
    r"如果|要是|假如|万一|可能|也许|或许|大概|希望|打算|计划|准备|考虑|梦想|觉得|以为|认为|感觉|好像|似乎|听说|据说|"
    r"(?<!小)说(?!唱)|(?<!思)(?<!理)想(?!象)|是否|是不是|差点|有望|有意|传闻|本来要|即将|能不能|要不要|问|好不好|将来|将要|应该|[“”「」]"
)
_QUESTION: Final = re.compile(r"[?？]|[吗呢吧]$|谁|什么|哪|多少")
_CLAUSES: Final = re.compile(r"[，,；;]\s*|\s{2,}")
_TAIL: Final = re.compile(r"(?:了|啦|呀|啊|哦|呢|的时候|而已)+$")
_KIN: Final = (
    "妈妈|爸爸|母亲|父亲|爸妈|父母|妈|爸|老婆|妻子|太太|老公|丈夫|女朋友|男朋友|老板|上司|经理|房东|班主任|"
    "姐姐|哥哥|妹妹|弟弟|儿子|女儿|姐夫|嫂子|岳父|岳母|公公|婆婆|"
    "表哥|表弟|表姐|表妹|堂哥|堂弟|堂姐|堂妹|叔叔|阿姨|舅舅|舅妈|姑姑|姑妈|姨妈|伯父|伯母|婶婶|侄子|侄女|外甥|"
    "奶奶|爷爷|外婆|外公|姥姥|姥爷|室友|狗狗|小狗|小猫|猫咪|狗|猫|公司|兔子|鹦鹉|仓鼠|车"
)
_NOT_NAMES: Final = re.compile(
    r"[我你您他她它们的了在是不想很都也就还要可说问打希望觉以为被把去没和与跟给对从这那谁哪每各另怎叫住]|如果|以前|现在|大家|"
    r"其|有人|别人|今年|去年|刚刚|已经|目前|现在|朋友|同事|邻居|下属|上级|领导|客户|同学|今天|昨天|明天|反正|谢谢|周末|一直|目前|最近"
)
_SUBJECT: Final = (
    rf"(?:(?P<me>我)(?:家?的?(?P<kin>{_KIN}))?|(?P<pronoun>[他她它])|(?P<user>用户)|"
    rf"(?P<name>{_HAN}{{2,4}}?|[A-Z][A-Za-z]+)(?:家?的(?P<thing>{_KIN}))?)"
)
_NOT_PLACES: Final = re.compile(r"[的着个很真特那这我你他她们也就还吗呢吧啊谁哪想说好多了过]")
_NOT_HOMES: Final = re.compile(
    r"小区$|附近|一起|宿舍$|酒店|医院|学校$|单位$|公司$|家里?$|楼上|楼下|隔壁|对面|旁边|城里$|外面"
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
_JOB_WORD: Final = rf"[\u3400-\u9fffA-Za-z]{{0,6}}?(?:{_JOBS}|师|员|经理|总监|主管|主任|教授|律师)"
_JOB: Final = rf"(?:[^，。的]{{2,8}}的)?(?P<v>[\u3400-\u9fffA-Za-z]{{0,4}}?(?:{_JOBS}))"
_PLACES: Final = re.compile(
    r"^(?:(?:广东|广西|浙江|江苏|山东|山西|河南|河北|湖南|湖北|四川|福建|安徽|江西|云南|贵州|陕西|甘肃|青海|辽宁|吉林|黑龙江|海南|"
    r"台湾|内蒙古|新疆|西藏|宁夏)省?)?(?:北京|上海|天津|重庆|广州|深圳|成都|杭州|武汉|西安|南京|苏州|长沙|郑州|青岛|大连|宁波|厦门|福州|合肥|济南|昆明|"
    r"沈阳|哈尔滨|长春|石家庄|太原|南昌|贵阳|南宁|海口|兰州|西宁|银川|拉萨|乌鲁木齐|呼和浩特|香港|澳门|台北|东京|纽约|"
    r"伦敦|巴黎||家|家里|外地|国外|外面|这里|那里|这儿|那儿|公司|办公室|线上|.*[省市区县国])$"
)
_NUMERIC: Final = "房租|租金|工资|月薪|年薪|体重|身高|价格|人口|年龄"
_SURNAMES: Final = (
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏窦章苏潘葛奚范彭郎鲁韦昌马苗凤花方俞任袁柳鲍史唐费廉岑薛"
    "雷贺倪汤滕殷罗毕郝邬安常乐于时傅皮卞齐康伍余元卜顾孟平黄和穆萧尹姚邵湛汪祁毛禹狄米贝明臧计伏成戴谈宋茅庞熊纪舒屈项祝董梁杜阮蓝闵席"
    "季麻强贾路娄危江童颜郭梅盛林刁钟徐邱骆高夏蔡田樊胡凌霍虞万支柯管卢莫房裘缪解应宗丁宣邓郁单杭洪包诸左石崔吉龚程嵇邢裴陆荣翁荀羊惠"
    "甄曲家封储靳焦牧段富巫乌巴弓侯宓蓬全郗班仰秋仲伊宫宁仇栾甘厉祖武符刘景詹束龙叶幸司韶黎薄印白怀邰从鄂索咸籍赖卓屠蒙池乔阳苍双闻莘"
    "党翟谭贡劳逄姬申扶堵冉宰桑桂牛寿通边扈燕冀浦尚农温庄晏柴瞿阎充慕连茹习艾鱼容向古易慎戈廖庾终暨居衡步都耿满弘匡国文寇广欧沃利蔚越夔"
    "隆师巩聂晁勾敖融冷辛阚那简饶空曾毋沙养鞠须丰关蒯相查后荆红游权逯盖益桓公"
)
"""First characters of Chinese names: the common ones of the hundred family names."""

_PERSONS: Final = "老板|上司|领导|班主任|女朋友|男朋友|女友|男友|老婆|老公|妻子|丈夫|房东|导师|主管|经理"
_NOUN: Final = (
    rf"(?P<noun>最(?:喜欢|爱|喜爱|钟爱)(?:吃|喝|看|听|玩)?的{_HAN}{{1,4}}?|手机号码?|电话号码?|联系电话|电话|号码|微信号?|邮箱(?:地址)?|"
    rf"(?:家庭)?住址|地址|[A-Za-z]*[- ]?(?:{_HAN}{{2}})?密码|{_NUMERIC}|生日|职业|职位|工作|名字|网名|昵称|老家|国籍|"
    rf"专业|血型|市长|首都|总统|{_PERSONS}|车)"
)
_IS: Final = r"(?:现在|目前|如今|已经|已|还|就)*(?:是|为|叫做|叫|：|:)(?:现在)?"
_CHANGED: Final = (
    r"(?:现在|目前|如今|已经|已|最近|刚刚|刚|又|都|也)*(?:从(?P<old>[^到成为]{1,12}?))?(?:被)?"
    r"(?:改|换|变|涨|升|降|更新|更改|修改|调整|提高|降低|挪|移|推迟|提前|延期|延长|安排)(?:成|为|到|在|至)(?:了)?"
)

_RULES: Final = [
    (re.compile(pattern + "$"), attribute, positive)
    for pattern, attribute, positive in (
        (rf"{_ADVERBS}(?:居住在|定居在|定居|住在|住到|住进|住){_PLACE}", "residence", True),
        (rf"{_ADVERBS}(?:人)?{_ADVERBS}在{_PLACE}(?:租房子?住|租房|生活|定居|安家|落户|买房定居)", "residence", True),
        (
            rf"{_ADVERBS}把家{_ADVERBS}(?:从(?P<old>{_HAN}{{2,8}}?))?{_ADVERBS}(?:搬|迁)(?:到|去|回|往)了?{_PLACE}",
            "residence",
            True,
        ),
        (rf"{_ADVERBS}从{_PLACE}{_ADVERBS}(?:搬走|搬出来|搬出|搬离|搬出去)", "residence", False),
        (rf"家{_ADVERBS}(?:在|住在|住){_PLACE}", "residence", True),
        (rf"的家{_ADVERBS}在{_PLACE}", "residence", True),
        (
            rf"{_ADVERBS}(?:从(?P<old>{_HAN}{{2,8}}?))?{_ADVERBS}搬(?:家)?{_ADVERBS}(?:到|去|回|进|来|往)了?{_PLACE}(?:(?:去|"
            rf"来)?(?:了|住|生活|工作|上班)?|[一二两三四五六七八九十半\d]+(?:个月|年|天|周)(?:多)?)",
            "residence",
            True,
        ),
        (rf"{_ADVERBS}(?:不再|不)(?:居住在|住在|住){_PLACE}", "residence", False),
        (rf"{_ADVERBS}(?:不再|不)在{_PLACE}住", "residence", False),
        (rf"{_ADVERBS}(?:搬离|搬出)了?{_PLACE}", "residence", False),
        (rf"{_ADVERBS}(?:改)?在(?P<v>[^，。在]{{2,12}}?)(?:工作|上班|任职|做事|任教|供职|当差)", "employer", True),
        (rf"{_ADVERBS}(?:就职于|任职于|供职于|受雇于|任教于)(?P<v>[^，。在]{{2,12}}?)", "employer", True),
        (
            rf"{_ADVERBS}(?:从(?P<old>[^，。]{{2,8}}?))?(?:换到|调到|调去|去|到)了?(?P<v>[^，。在]{{2,12}}?)(?:工作|上班|任职)了",
            "employer",
            True,
        ),
        (
            rf"{_ADVERBS}从(?P<old>[^，。]{{2,8}}?)(?:换到|调到|调去)了?(?P<v>[^，。在]{{2,12}}?)(?:工作|上班|任职)?",
            "employer",
            True,
        ),
        (rf"{_ADVERBS}是(?P<v>[^，。的在]{{2,12}}?)的?(?:员工|职员)", "employer", True),
        (rf"{_ADVERBS}被(?P<v>[^，。]{{2,12}}?)(?:录用|录取为员工|聘用|挖走)", "employer", True),
        (rf"{_ADVERBS}被(?P<v>[^，。]{{2,12}}?)(?:裁员|裁掉|裁|辞退|开除|解雇)", "employer", False),
        (rf"{_ADVERBS}(?:辞掉|辞去|辞了)了?(?P<v>[^，。]{{2,12}}?)的(?:工作|职务|职位)", "employer", False),
        (rf"{_ADVERBS}离开了?(?P<v>[^，。]{{2,12}}?)", "employer", False),
        (rf"{_ADVERBS}(?:加入|入职)了?(?P<v>[^，。]{{2,12}}?)(?:公司|工作|上班)?", "employer", True),
        (rf"{_ADVERBS}(?:从(?P<old>[^，。]{{2,8}}?))?跳槽(?:到|去|进|至)了?(?P<v>[^，。]{{2,12}}?)", "employer", True),
        (rf"{_ADVERBS}(?:不再|不)在(?P<v>[^，。]{{2,12}}?)(?:工作|上班|任职|干)", "employer", False),
        (rf"{_ADVERBS}从(?P<v>[^，。]{{2,12}}?)(?:辞职|离职|退休|辞去工作|辞掉工作|离开)", "employer", False),
        (rf"{_ADVERBS}(?:不再|不)在(?P<v>[^，。在]{{2,12}}?)", OTHERS, False),
        (rf"{_ADVERBS}把(?:那[辆台个只])?(?P<v>[^，。在]{{2,12}}?)(?:卖掉|卖|处理掉|转让)", OTHERS, False),
        (
            rf"{_ADVERBS}(?:不再是|不是|不当|不做|不干|不再当|不再做|不再干)(?:一名|一个|一位|个)?{_JOB}",
            "occupation",
            False,
        ),
        (
            rf"{_ADVERBS}(?:的工作|的职位)?(?:是|当上|当(?!过)|做(?!过)|担任(?!过)|成为|成)了?(?:一名|一个|一位|名|个|位)?{_JOB}",
            "occupation",
            True,
        ),
        (
            rf"{_ADVERBS}(?:从(?P<old>[^，。]{{2,8}}?))?(?:改行|转行|转职|升职|晋升|提拔|升任|升|转岗|改)(?:去)?(?:当|做|成为|成|为|到)?了?"
            rf"(?:一名|一个|一位|名|个|位)?{_JOB}",
            "occupation",
            True,
        ),
        (rf"{_ADVERBS}(?:刚?过|满|有|是|到)?{_ADVERBS}(?P<v>{_NUMBER})周?岁(?:生日)?", "age", True),
        (
            rf"(?:的?名字)?{_ADVERBS}(?:名字叫|名叫|叫做|改名叫|改名为|改名成|改叫|叫|是|为)(?P<v>{_HAN}{{2,4}}|[A-Z][a-z]+)",
            "name",
            True,
        ),
        (rf"(?:的?名字)?{_ADVERBS}(?:不再|不)叫(?P<v>{_HAN}{{2,4}}|[A-Z][a-z]+)", "name", False),
        (rf"{_ADVERBS}(?:不再|不)(?:怎么)?(?:喜欢|爱|喜爱)(?P<v>[^，。]{{1,12}}?)", "likes", False),
        (rf"{_ADVERBS}再也不(?P<v>[^，。是在会能]{{2,12}}?)", "likes", False),
        (rf"{_ADVERBS}(?:讨厌|厌恶|受不了)(?P<v>[^，。]{{1,12}}?)", "likes", False),
        (
            rf"{_ADVERBS}对(?P<v>[^，。]{{1,10}}?){_ADVERBS}(?:没有?了?兴趣|失去了?兴趣|不感兴趣|提不起兴趣|厌倦|腻)",
            "likes",
            False,
        ),
        (rf"{_ADVERBS}对(?P<v>[^，。]{{1,10}}?){_ADVERBS}(?:着迷|感兴趣|有兴趣|上瘾)", "likes", True),
        (
            rf"{_ADVERBS}(?:喜欢上|迷上|喜欢|喜爱|热爱|爱上|爱(?![好情心护惜国]))了?(?P<v>[^，。]{{1,12}}?)的?",
            "likes",
            True,
        ),
        (rf"{_ADVERBS}对(?P<v>[^，。]{{1,8}}?){_ADVERBS}(?:不再|不){_ADVERBS}过敏", "allergy", False),
        (rf"{_ADVERBS}(?:不再|不)对(?P<v>[^，。]{{1,8}}?)过敏", "allergy", False),
        (rf"{_ADVERBS}对(?P<v>[^，。不]{{1,8}}?)过敏", "allergy", True),
        (rf"{_ADVERBS}(?:结婚|已婚)", "marital status=married", True),
        (rf"{_ADVERBS}(?:离婚|离异)", "marital status=divorced", True),
        (rf"{_ADVERBS}(?:单身)", "marital status=single", True),
        (
            rf"(?:家里?)?{_ADVERBS}(?:有|养着|养了|拥有){_ADVERBS}(?P<v>{_NUMBER})(?:个|只|条|辆|套|台|匹|位|名)(?P<noun>{_HAN}{{1,4}})",
            "count",
            True,
        ),
        (
            rf"{_ADVERBS}(?:开着?一?(?:辆|台)|换了?一?(?:辆|台)|开的{_ADVERBS}是)(?P<v>[\u3400-\u9fffA-Za-z]{{2,8}}?)",
            "vehicle",
            True,
        ),
    )
]
_HEAD: Final = re.compile(
    rf"(?P<time>(?:从?\d{{4}}年(?:起|以来|开始)?|{_PAST}|{_ADVERB}))*{_SUBJECT}{_BEFORE}(?P<rest>.+)$"
)
_OWNED: Final = re.compile(
    rf"{_BEFORE}{_ADVERBS}(?:(?P<me>我)(?:家?的(?P<kin>{_KIN}))?|(?P<pronoun>[他她其])|(?P<name>{_HAN}{{2,4}}?|"
    rf"[A-Z][A-Za-z]+))?"
    rf"(?:家)?(?:每个?月)?(?P<past>{_BEFORE}){_ADVERBS}的?(?P<q>新的?|旧的?|老的?(?!板|家|婆|公)|{_PAST})?的?{_NOUN}"
    rf"(?:(?P<not>(?:现在|已经|目前)*(?:不再|不)(?:是|叫|为)|(?P<gone>(?=.+(?:不用|停用|作废|注销)$)))|(?P<copula>{_CHANGED}|{_IS}|"
    rf"(?=[\d¥￥])))"
    rf"(?P<v>.+?)(?:不用|停用|作废|注销)?$"
)
_SWAPPED: Final = re.compile(
    rf"(?:(?P<me>我)|(?P<pronoun>[他她])|(?P<name>{_HAN}{{2,4}}?|[A-Z][A-Za-z]+)){_ADVERBS}把(?:自己的?|我的|"
    rf"家里的?)?{_NOUN}{_ADVERBS}"
    rf"(?:从(?P<old>[^到成为]{{1,20}}?))?(?:改|换|设|更新|修改|调整|变)(?:成|为|到)了?(?P<v>.+)$"
)
_NEW_ONE: Final = re.compile(
    rf"(?:(?P<me>我)|(?P<pronoun>[他她])|(?P<name>{_HAN}{{2,4}}?|[A-Z][A-Za-z]+)){_ADVERBS}的?(?:换|改|涨|有|升|加|降)了?(?:个|"
    rf"一个)?(?:新的?)?{_NOUN}$"
)
_NOW_IT_IS: Final = re.compile(
    rf"(?:而)?{_ADVERBS}(?:(?:新的?|它|那)?{_NOUN}?{_ADVERBS}(?:是|叫|为|变成|换成|改成|开|涨到|：|:)了?(?:现在)?)?(?P<v>[^不没].*)$"
)
_EVENT: Final = re.compile(
    rf"(?:以后|今后|从现在起|从这周起|从本周起|从下周起)?(?P<thing>{_HAN}{{1,8}}?(?:会|会议|例会|排练|评审|课|聚会|培训|比赛|截止日期|截止时间|考试|面试|预约|训练|活动|讲座|典礼|婚礼|手术|角|营|操|演出|联赛))"
    rf"(?:的?时间|的?日期)?(?P<past>{_BEFORE})(?:现在|目前|已经|已|都|以后|今后)*"
    rf"(?:(?P<not>(?:不再|不)(?:在|是))|是|在|都在|定在|安排在|改在|固定在|放在|(?=每)|{_CHANGED}){_WHEN}(?:举行|进行|开|上|开始)?$"
)
_NOW_ON: Final = re.compile(
    rf"{_ADVERBS}(?:{_CHANGED}|改在|是|在|定在|安排在)了?{_WHEN}(?P<past>(?!))?(?P<not>(?!))?(?:举行|进行|开|上|开始)?$"
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
    topic: tuple[str, str] | None = None
    for clause in _CLAUSES.split(text):
        if len(clause) > _MAX_CLAUSE_CHARS:
            unread += 1
            continue
        if _UNSURE.search(clause):
            return found, unread + 1, last
        bare = _TAIL.sub("", clause.strip())
        read = _follow_up(bare, topic)
        if not read:
            if relative := _RELATIVE.match(bare):
                last = subject = fold_value(relative["name"])
                unread += 1
                continue
            topic = _topic(bare, me=me, last=last, carried=subject)
            read, subject = _read_clause(clause.strip(), me=me, last=last, carried=subject)
        if subject is not None and not subject.startswith(me):
            last = subject
        found.extend(read)
        unread += not read and len(clause) > 2
    return found, unread, last


_RELATIVE: Final = re.compile(rf"(?P<name>{_HAN}{{2,3}})是我的?(?:{_KIN}|同事|同学|朋友|邻居|下属|领导|老师)$")


def _topic(bare: str, *, me: str, last: str | None, carried: str | None) -> tuple[str, str] | None:
    """(owner, noun) of which the clause says only that it changed or what it is no longer."""
    match = _NEW_ONE.match(bare)
    if match is None and (owned := _OWNED.match(bare)) and owned["not"]:
        match = owned
    if match is None:
        return None
    owner = _subject(match, match.groupdict().get("kin"), me=me, last=last, carried=carried)
    return None if owner is None else (owner, match["noun"])


def _follow_up(bare: str, topic: tuple[str, str] | None) -> list[Raw]:
    match = _NOW_IT_IS.match(bare) if topic else None
    if topic is None or match is None:
        return []
    typed = _typed(topic[1], match["v"])
    return [Raw(topic[0], *typed)] if typed else []


def _read_clause(clause: str, *, me: str, last: str | None, carried: str | None) -> tuple[list[Raw], str | None]:
    bare = _TAIL.sub("", clause)
    if (match := _EVENT.match(bare)) and not _NOT_NAMES.search(match["thing"]):
        return [_dated(match)], f"the {match['thing']}"
    if carried is not None and carried.startswith("the ") and (match := _NOW_ON.match(bare)):
        return [_dated(match, carried)], carried
    if match := _SWAPPED.match(bare):
        subject = _subject(match, None, me=me, last=last, carried=carried)
        if subject is not None and (read := _held(match, subject, past=False)):
            return read, subject
    if match := _OWNED.match(bare):
        subject = _subject(match, match["kin"], me=me, last=last, carried=carried)
        if subject is not None:
            read = _held(match, subject, past=bool(_PAST_IN.search(clause)))
            if read:
                return read, subject
    if (match := _HEAD.match(bare)) and (read := _headed(match, clause, me=me, last=last)):
        return read, read[0].subject
    if carried is not None:
        read = _predicates(bare, clause, carried)
        # «我刚才路过的公园，叫X» names the park.
        return [each for each in read if each.attribute != "name" or carried != me], carried
    if named := _NAMED.match(clause):
        name = named["name"]
        if named["kin"]:
            return [], f"{me}'s {named['kin']}"
        return [], None if _NOT_NAMES.search(name) or name in _KIN.split("|") else fold_value(name)
    return [], me if _ABOUT_ME.match(clause) else None


_NAMED: Final = re.compile(
    rf"(?:我的?(?P<kin>{_KIN})|(?P<name>{_HAN}{{2,3}}?))(?={_ADVERB}|搬|换|离开|辞|升|涨|找到|改|转|被|从|把|不|卖|跳槽|买|退休)"
)
_ABOUT_ME: Final = re.compile(rf"我(?!的|家的|{_KIN}|同事|朋友|同学|邻居|领导|下属)")


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
    if not value or value[0] in "你我他她它这那谁其":
        return []
    if attribute == "count" and _PASSING.search(match["noun"]):
        return []
    if attribute == "employer" and value[0] in "一某几":
        return []
    if attribute == "count":
        attribute = f"count of {match['noun']}"
    if attribute == "employer" and _PLACES.match(value):
        attribute = "workplace"
    if attribute in {"residence", "employer", "workplace", OTHERS} and _NOT_PLACES.search(value):
        return []
    if attribute == "residence" and (value.endswith(_DOINGS) or _NOT_HOMES.search(value)):
        return []
    if attribute == "name" and (value in _JOBS.split("|") or not _may_be_named(match)):
        return []
    found = [Raw(subject, attribute, _number(value) if attribute == "age" else fold_value(value), positive, current)]
    if old := match.groupdict().get("old"):
        found.append(Raw(subject, OTHERS, fold_value(old), positive=False))
    return found


_PASSING: Final = re.compile(
    r"问题|烦恼|想法|建议|会议|计划|机会|地方|原因|消息|事|愿望|梦想|习惯|小时|星期|月|邮箱|缺点|优点|要求|活动|约会|面试|任务|选择|办法|目标"
)


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
    groups = match.groupdict()
    typed = _typed(match["noun"], match["v"])
    if typed is None:
        return []
    old = (groups.get("q") or "")[:1] in {"旧", "老"}
    ended = bool(groups.get("not"))
    return [Raw(subject, *typed, positive=not ended, current=not past and not old)]


def _typed(noun: str, text: str) -> tuple[str, str] | None:
    """(attribute, value), where the text has the form that a value of the noun has, else None."""
    text = text.strip().removesuffix("了")
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
        attribute = {"租金": "rent", "房租": "rent", "月薪": "工资", "年龄": "age"}.get(noun, noun)
        number = _CURRENCY.match(text)
        value = number[1].replace(",", "") + (number[2] or "") if number else None
    elif noun.startswith("最"):
        attribute = "favourite " + noun.split("的", 1)[1]
    elif noun in {"职业", "职位", "工作"}:
        attribute, value = "occupation", re.sub(r"^(?:一名|一个|一位|名|个|位)", "", text)
        value = value if re.fullmatch(_JOB_WORD, value) else None
    elif noun in _PERSONS.split("|"):
        value = text.removeprefix("叫") if re.fullmatch(rf"叫?[{_SURNAMES}]{_HAN}{{1,3}}|[A-Z][a-z]+", text) else None
        value = None if value and _NOT_NAMES.search(value) else value
    elif noun == "车":
        attribute = "vehicle"
        value = re.sub(r"^(?:一?(?:辆|台|部))", "", text)
        value = value if re.fullmatch(r"[\u3400-\u9fffA-Za-z]{2,8}", value) and value[-1] != "色" else None
    elif noun == "名字":
        attribute = "name"
    elif noun.endswith(("地址", "住址")) and "@" in text:
        attribute, value = "email", text.casefold()
    elif noun == "生日":
        date = re.fullmatch(r"(?:在|每年|农历|阴历)*((?:\d{4}年)?\d{1,2}月\d{1,2})[日号]", text)
        value = f"{date[1]}日" if date else None
    elif noun == "老家":
        value = text.removeprefix("在").removesuffix("的")
    if not value or len(value) > 30 or value[0] in "不没我你他她这那很其":
        return None
    return attribute, fold_value(value)


def _dated(match: "re.Match[str]", subject: str | None = None) -> Raw:
    subject = subject or f"the {match['thing']}"
    current, positive = not match["past"], not match["not"]
    day = match["day"]
    if day:
        day = day.removeprefix("每").replace("星期", "周").replace("礼拜", "周").replace("号", "日")
        return Raw(subject, "day", "周日" if day == "周天" else day, positive, current)
    return Raw(subject, "hour", match["hour"], positive, current)
