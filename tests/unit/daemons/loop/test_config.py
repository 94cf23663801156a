from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.daemons.loop.config import LoopConfig, parse_config, read_setup, words_of
from ledger.daemons.loop.folders import InvalidLoop, LoopFolder
from ledger.daemons.loop.handling import templates


def test_an_empty_object_has_all_the_defaults() -> None:
    config = parse_config("{}", "loop.json")
    assert config.schedule.interval_seconds == 3600
    assert (config.brakes.max_iterations, config.brakes.max_budget_usd) == (25, None)
    assert config.brakes.score_plateau_window == 5
    assert (config.blast_radius.file_scope, config.blast_radius.use_worktree) == ([], False)
    assert config.roles.implement is None
    assert config.gate.command is None


@pytest.mark.parametrize(
    ("config", "key", "hint"),
    [
        ({"brake": {}}, "brake is no key", "'brakes'"),
        ({"brakes": {"max_iteration": 1}}, "brakes.max_iteration is no key", "'max_iterations'"),
        ({"roles": {"verifier": None}}, "roles.verifier is no key", "'verify'"),
        ({"roles": {"verify": {"promt": "x"}}}, "roles.verify.promt is no key", "'prompt'"),
        ({"zzz": 1}, "zzz is no key", "The keys there are name, "),
        ({"brakes": {"max_iterations": "3"}}, "brakes.max_iterations", "Mend"),
        ({"brakes": {"max_iterations": True}}, "brakes.max_iterations", "Mend"),
        ({"brakes": {"max_budget_usd": -1}}, "brakes.max_budget_usd", "Mend"),
        ({"roles": {"verify": {}}}, "roles.verify", "Mend"),
        ({"harness": {"command": []}}, "harness.command names no program", "list of words"),
        ({"harness": {"command": "a 'b"}}, "harness.command: No closing quotation", "quotes"),
        ({"gate": {"command": ""}}, "gate.command names no program", "list of words"),
        ({"blast_radius": {"file_scope": ["/"]}}, "blast_radius.file_scope: '/'", "src/"),
        ({"blast_radius": {"file_scope": ["[z-a]"]}}, "blast_radius.file_scope: '[z-a]'", "src/"),
    ],
)
def test_a_mistake_is_named_by_its_key(config: object, key: str, hint: str) -> None:
    with pytest.raises(InvalidLoop) as wrong:
        parse_config(json.dumps(config), "loop.json")
    assert key in wrong.value.detail
    assert hint in wrong.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{'a': 1}"])
def test_what_is_no_json_object_is_said_to_be_none(text: str) -> None:
    with pytest.raises(InvalidLoop, match=r"loop\.json"):
        parse_config(text, "loop.json")


def test_a_command_is_split_as_a_shell_would_and_no_shell_sees_it() -> None:
    assert words_of("run 'a b' $HOME; rm", "c") == ("run", "a b", "$HOME;", "rm")
    assert words_of(["run", "a b"], "c") == ("run", "a b")
    assert words_of(None, "c") is None


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", "a b", "x" * 65, "a\n"])
def test_a_name_that_could_lead_elsewhere_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidLoop):
        LoopFolder(tmp_path, name)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\0b", b"x" * (2**20 + 1)])
def test_a_prompt_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = LoopFolder(tmp_path, "l")
    folder.home.mkdir(parents=True)
    folder.config.write_text('{"roles": {"verify": {"prompt": "verify.md"}}}')
    (folder.home / "verify.md").write_bytes(content)
    with pytest.raises(InvalidLoop, match=r"roles\.verify\.prompt"):
        read_setup(folder)


def test_every_template_is_a_loop_whose_prompts_ask_for_what_the_runner_reads() -> None:
    assert templates() == ["blank", "dependency-update", "docs", "test-fixing"]
    root = Path(__file__).parents[4] / "ledger" / "daemons" / "loop" / "templates"
    for name in templates():
        config = parse_config((root / name / "loop.json").read_text(), name)
        assert isinstance(config, LoopConfig)
        assert config.roles.implement is not None
        assert config.roles.verify is not None
        verify = (root / name / config.roles.verify.prompt).read_text()
        assert {"{task}", "{output}", "{artifact}"} <= {
            word for word in ("{task}", "{output}", "{artifact}") if word in verify
        }
        assert '"pass"' in verify
        for role in (config.roles.implement, config.roles.orchestrate):
            assert role is None or "{task}" in (root / name / role.prompt).read_text()
