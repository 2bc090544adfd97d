"""The scripted model holds its lines to what a reply must hold to."""

import pytest

from vimbank.chat.replies import estimated_tokens
from vimbank.chat.scripted import ScriptedChat
from vimbank.errors import BackendUnavailable, ModelError
from vimbank.ports import ChatMessage

ASKED = [ChatMessage("user", "Hello, wonderful world")]


def test_lines_come_in_order_and_the_last_one_stays() -> None:
    chat = ScriptedChat(["one", lambda asked: asked.messages[0].content.upper()])
    assert [chat.complete(ASKED).text for _ in range(3)] == ["one", *["HELLO, WONDERFUL WORLD"] * 2]
    assert len(chat.asked) == 3


def test_errors_are_raised_and_no_script_is_one() -> None:
    with pytest.raises(BackendUnavailable):
        ScriptedChat([BackendUnavailable("chat endpoint", "down")]).complete(ASKED)
    with pytest.raises(ModelError):
        ScriptedChat().complete(ASKED)


def test_a_schema_wants_json() -> None:
    chat = ScriptedChat([{"summary": "ü"}, "null"])
    assert chat.complete(ASKED, schema={}).text == '{"summary": "ü"}'
    with pytest.raises(ModelError):
        chat.complete(ASKED, schema={})


def test_check_comes_first() -> None:
    def check() -> None:
        raise KeyboardInterrupt

    chat = ScriptedChat(["one"])
    with pytest.raises(KeyboardInterrupt):
        chat.complete(ASKED, check=check)
    assert chat.asked == []


def test_an_estimate_of_tokens() -> None:
    """4 for the message; Hell o , wond erfu l worl d; and each Chinese character one."""
    assert estimated_tokens(ASKED) == 4 + 8
    assert estimated_tokens([ChatMessage("user", "你好。")]) == 4 + 3
