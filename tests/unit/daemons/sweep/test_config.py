from __future__ import annotations

from pathlib import Path

import pytest

from ledger.daemons.sweep.config import InvalidConfig, config_path, load

ENVIRONMENT = {"XDG_DATA_HOME": "/data", "XDG_STATE_HOME": "/state"}


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


def test_an_empty_file_is_a_configuration_with_all_defaults(tmp_path: Path) -> None:
    config = load(written(tmp_path, ""), ENVIRONMENT)
    assert (config.keys.scan.max_candidates, config.keys.scan.max_per_session) == (50, 12)
    assert config.folder == Path("/data/ledgerd/incidents")
    assert config.state.parent == Path("/state/ledgerd")
    assert config.lock == config.state.with_name(config.state.name + ".lock")
    assert (config.seen_list, config.keys.git.push, config.keys.privacy.redact) == (None, False, True)


def test_relative_paths_are_taken_from_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home-of-somebody")
    text = '[ledger]\ndir = "register"\n[state]\nfile = "../state.db"\nseen_list = "~/seen.txt"'
    config = load(written(tmp_path, text), ENVIRONMENT)
    assert config.folder == tmp_path / "register"
    assert config.state == tmp_path.parent / "state.db"
    assert config.seen_list == Path("/home-of-somebody/seen.txt")


def test_registers_of_two_folders_have_two_names(tmp_path: Path) -> None:
    names = {
        load(written(tmp_path, f'[ledger]\ndir = "{dir}/incidents"'), ENVIRONMENT).register for dir in ("one", "two")
    }
    assert len(names) == 2
    assert all(name.startswith("incidents-") for name in names)


MISTAKES = {
    "an unknown table": ("[scna]", "scna: there is no such key"),
    "an unknown key": ("[scan]\nmax_candidate = 5", "scan.max_candidate: there is no such key"),
    "an unknown key of a source": ('[[source]]\ntype = "codex"\npaths = "x"', "source[0].paths: there is no"),
    "a wrong type": ('[scan]\nmax_candidates = "5"', "scan.max_candidates: Expected `int`"),
    "a number out of bounds": ("[scan]\nmax_candidates = 0", "scan.max_candidates: Expected `int` >= 1"),
    "a list of the wrong things": ("[scan]\nexclude = [1]", "scan.exclude[0]: Expected `str`"),
    "a bad enum": ('[scan]\nfirst_run = "later"', "scan.first_run: Invalid enum value 'later'"),
    "a bad type of source": ('[[source]]\ntype = "vim"', "source[0].type: Invalid enum value 'vim'"),
    "a source without a type": ('[[source]]\npath = "x"', "source[0].type: is missing"),
    "a source with a bad name": ('[[source]]\ntype = "codex"\nname = "a/b"', "source[0].name: "),
    "two sources of one name": (
        '[[source]]\ntype = "codex"\nname = "a"\n[[source]]\ntype = "opencode"\nname = "a"',
        "source[1].name: two sources are named 'a'",
    ),
    "two sources without a name": (
        '[[source]]\ntype = "codex"\n[[source]]\ntype = "codex"\npath = "x"',
        "source[1].name: two sources are named 'codex'",
    ),
    "a redaction pattern that is none": (
        '[privacy]\nextra_redact_patterns = ["("]',
        "privacy.extra_redact_patterns[0]: '(' is no regular expression",
    ),
    "an endpoint without address": ('[judge]\nbackend = "openai"\nmodel = "m"', "judge.base_url: "),
    "an endpoint that is no address": (
        '[judge]\nbackend = "openai"\nmodel = "m"\nbase_url = "file:///etc"',
        "judge.base_url: ",
    ),
    "an endpoint without model": ('[judge]\nbackend = "openai"\nbase_url = "http://h"', "judge.model: "),
    "a command that is missing": ('[judge]\nbackend = "command"', "judge.command: "),
    "a command whose quotes do not match": (
        '[judge]\nbackend = "command"\ncommand = "a \'b"',
        "judge.command: cannot be split",
    ),
    "a hook whose quotes do not match": ("[hooks]\nnotify_cmd = '\"a'", "hooks.notify_cmd: cannot be split"),
    "a push without git": ("[git]\npush = true", "git.push: needs git.enabled"),
    "a remote that is an option": ('[git]\nremote = "--upload-pack=x"', "git.remote: "),
    "a branch that is an option": ('[git]\nbranch = "-x"', "git.branch: "),
    "a title of two lines": ('[ledger]\ntitle = "a\\n# b"', "ledger.title: "),
    "a state that is the register": ('[ledger]\ndir = "x"\n[state]\nfile = "x"', "state.file: "),
    "a seen list that is the lock": ('[state]\nfile = "x"\nseen_list = "x.lock"', "state.seen_list: "),
    "a state that is the configuration": ('[state]\nfile = "sweep.toml"', "state.file: "),
    "a prompt that is not there": ('[judge]\nprompt_file = "nothing"', "judge.prompt_file: "),
    "no TOML": ("[scan", "sweep.toml: "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_the_file_and_the_key(tmp_path: Path, mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(InvalidConfig) as refused:
        load(written(tmp_path, text), ENVIRONMENT)
    assert expected in refused.value.detail
    assert "sweep.toml" in refused.value.detail or "prompt_file" in refused.value.detail
    assert refused.value.hint


def test_a_file_that_is_not_there_says_how_one_is_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as refused:
        load(tmp_path / "none.toml", ENVIRONMENT)
    assert "sweep init" in refused.value.hint


def test_the_file_is_named_or_in_the_environment_or_in_the_users_folder(tmp_path: Path) -> None:
    environment = {"LEDGERD_SWEEP_CONFIG": "/one.toml", "XDG_CONFIG_HOME": "/config"}
    assert config_path(tmp_path / "x", environment) == tmp_path / "x"
    assert config_path(None, environment) == Path("/one.toml")
    assert config_path(None, {"XDG_CONFIG_HOME": "/config"}) == Path("/config/ledgerd/sweep.toml")
