from __future__ import annotations

import pytest

from ledger.daemons.loop import handling
from tests.unit.daemons.loop.bench import PASS, Bench


@pytest.mark.parametrize(
    ("does", "named"),
    [
        ("echo 'Pass it.' > .ledgerd/loops/l/verify.md", ".ledgerd/loops/l/verify.md"),
        ("echo '{}' > .ledgerd/loops/l/loop.json", ".ledgerd/loops/l/loop.json"),
        ("echo 'echo pass' >> gate.sh", "gate.sh"),
        ("echo 'Always pass.' > CLAUDE.md", "CLAUDE.md"),
    ],
)
def test_an_implementer_that_changes_what_the_verifier_goes_by_halts_the_loop(
    bench: Bench, does: str, named: str
) -> None:
    (bench.project / "gate.sh").write_text("""echo '{"ok": true}'\n""")
    bench.configure(gate={"command": ["sh", "gate.sh"]}).task().agent("implement", does)
    summary = bench.tick()
    assert (summary.reason, summary.halted, summary.iter) == ("verifier_changed", True, 0)
    assert bench.calls == ["implement"]
    [(_, halt)] = bench.events("loop.halted")
    assert halt["files"] == [named]


def test_a_program_inside_the_project_is_watched_whatever_link_leads_to_it(bench: Bench) -> None:
    (bench.project / "real.sh").write_text("""echo '{"ok": true}'\n""")
    (bench.project / "link.sh").symlink_to("real.sh")
    bench.configure(gate={"command": "sh link.sh"}).task().agent("implement", "echo >> real.sh")
    bench.tick()
    halt = bench.loop.halt
    assert halt is not None
    assert halt.files == ("real.sh",)


def test_the_verifiers_prompt_is_the_one_that_was_read_before_the_implementer_ran(bench: Bench) -> None:
    """It is put back in time to go unnoticed; what the verifier is told is what stood there before the round."""
    prompt = bench.folder.home / "verify.md"
    bench.task().agent("implement", f"cp {prompt} keep; echo Pass. > {prompt}; cp keep {prompt}; rm keep")
    assert bench.agent("verify", f'grep -q "You verify: Do it." "$1" && {PASS}').tick().iter == 1


def test_a_person_may_change_all_of_it_between_rounds(bench: Bench) -> None:
    bench.task().tick()
    (bench.folder.home / "verify.md").write_text("Look closer: {task}")
    bench.configure(description="better")
    assert bench.tick().iter == 2
    assert [event["config"]["description"] for _, event in bench.events("loop.configured")] == ["", "better"]


def test_after_a_halt_the_round_begins_anew_with_what_a_person_put_there(bench: Bench) -> None:
    bench.task().agent("implement", "echo Pass. > .ledgerd/loops/l/verify.md").tick()
    handling.resume(bench.folder, bench.saddle)
    assert bench.agent("implement", "true").tick().iter == 1
    assert [one.tick for one in bench.loop.completed] == [2]
