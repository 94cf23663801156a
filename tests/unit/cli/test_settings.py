from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ledger.cli.settings import InvalidSettings, Settings, load_settings, setting


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_without_a_file_and_variables_the_defaults_hold() -> None:
    settings = load_settings(environment={})
    assert (settings.host, settings.port, settings.silent_after_s) == ("127.0.0.1", 8137, 300)
    assert settings.url is None


def test_the_default_store_lies_in_the_folder_for_data(tmp_path: Path) -> None:
    assert load_settings().store == f"sqlite:///{tmp_path}/data/ledgerd/ledger.db"


def test_variables_stand_above_the_file_and_the_file_above_the_defaults(tmp_path: Path) -> None:
    write(tmp_path / "ledgerd.toml", 'port = 1\nhost = "::1"\n')
    settings = load_settings(environment={"LEDGERD_PORT": "2", "LEDGERD_SILENT_AFTER_S": "1.5"})
    assert (settings.port, settings.host, settings.silent_after_s) == (2, "::1", 1.5)


def test_a_flag_stands_above_everything(tmp_path: Path) -> None:
    @click.command()
    @setting("port", type=int)
    def command(port: int) -> None:
        click.echo(port)

    write(tmp_path / "ledgerd.toml", "port = 1\n")
    assert CliRunner().invoke(command, ["--port", "3"]).output == "3\n"
    assert CliRunner().invoke(command, []).output == "1\n"


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings(environment={"LEDGERD_PORT": ""}).port == Settings().port


@pytest.mark.parametrize("text", ["prot = 1", 'port = "1"', "port = 70000", "port = true", "silent_after_s = 0"])
def test_an_unknown_key_or_a_wrong_value_names_the_file_and_the_key(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "other.toml", text)
    with pytest.raises(InvalidSettings) as caught:
        load_settings(file, {})
    assert str(file) in caught.value.detail
    assert text.partition(" ")[0] in caught.value.detail


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(InvalidSettings, match="LEDGERD_PORT: "):
        load_settings(environment={"LEDGERD_PORT": "http"})


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"ledgerd\.toml: .*line 1"):
        load_settings(write(tmp_path / "ledgerd.toml", "port: 1"), {})


def test_a_folder_cannot_name_the_server_that_our_token_is_sent_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ledgerd.toml").write_text('url = "http://elsewhere.example"\n')
    with pytest.raises(InvalidSettings, match="without a token"):
        load_settings(environment={"LEDGERD_TOKEN": "ours"})
    assert load_settings(environment={"LEDGERD_URL": "http://127.0.0.1:1"}).url == "http://127.0.0.1:1"
    assert load_settings(tmp_path / "ledgerd.toml", environment={}).url == "http://elsewhere.example"
    (tmp_path / "ledgerd.toml").write_text('url = "http://elsewhere.example"\ntoken = "theirs"\n')
    assert load_settings(environment={}).token == "theirs"
