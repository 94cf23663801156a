"""A small fleet with something of everything, for looking at the pages."""

from __future__ import annotations

from tests.browser.driving import Ledger

GRAMMAR = "The grammar is ported, 212 of 240 cases pass. The remaining 28 are error positions in multi-byte text."
WELD = "The flange weld holds. First sentence carries the information; fuzzed for ten minutes without a difference."
COLOURED = "\x1b[1m\x1b[32m   Compiling\x1b[0m parser v0.3.0\n\x1b[31merror[E0382]\x1b[0m: moved value\n"


def tell(ledger: Ledger) -> dict[str, str]:
    """Writes the fleet's story. The paths of a failed goal, a waiting one, a new one, a task and a session."""
    parser, run = ledger.started_goal(
        "Port the parser to Rust",
        "run-1",
        brief="Same grammar, same error messages, twice the speed.",
        branch_name="goal/parser-rs",
    )
    part = str(ledger.post("/api/tasks", {"title": "Port the grammar", "goal_id": parser})["id"])
    ledger.open("grammar-1", part, agent="codex", host="mole", model="large-2")
    ledger.push("grammar-1", (0, "comment", {"body": "Reading the old parser."}))
    ledger.result("grammar-1", "done", "All rules are ported.")
    _work(ledger, "run-1")
    for session in ("run-1", "run-1-again"):
        if session != "run-1":
            ledger.open(session, run, resumed_from="run-1")
        ledger.result(session, "failed", "the harness collapsed\nsignal 9 while linking, 31.8 GB resident")
    orders, _ = ledger.started_goal("Move orders to the new schema", "orders-1")
    ledger.push(
        "orders-1",
        (0, "comment", {"body": "Backfill is at 62 %; next: switch reads."}),
        (1, "waiting", {"question": "May I run the migration on staging?"}),
    )
    notes, _ = ledger.started_goal("Write the release notes for 4.2", "notes-1")
    ledger.push("notes-1", (0, "tool_call", {"tool": "shell", "args": {"command": "git log --oneline v4.1..HEAD"}}))
    created = ledger.goal("Quiet the nightly jobs", brief="They page somebody every night, mostly for nothing.")
    ledger.post(f"/api/tasks/{ledger.post('/api/tasks', {'title': 'Fix flaky uploads'})['id']}/block")
    return {
        "failed-goal": f"/goals/{parser}",
        "waiting-goal": f"/goals/{orders}",
        "working-goal": f"/goals/{notes}",
        "created-goal": f"/goals/{created}",
        "run-task": f"/tasks/{run}",
        "session": "/sessions/run-1",
    }


def _work(ledger: Ledger, session: str) -> None:
    echo = "cat << 'EOF' | ledgerd comment\n" + GRAMMAR + "\nEOF"
    ledger.push(
        session,
        (0, "message", {"role": "assistant", "text": "I begin with the grammar, then the error messages."}),
        (1, "tool_call", {"tool": "shell", "args": {"command": "cargo build"}, "call_id": "c1"}),
        (2, "tool_result", {"call_id": "c1", "stdout": COLOURED, "exit_code": 101}),
        (3, "tool_call", {"tool": "shell", "args": {"command": echo}, "call_id": "c2"}),
        (4, "tool_result", {"call_id": "c2", "stdout": "", "exit_code": 0}),
        (5, "comment", {"body": GRAMMAR}),
        (6, "tool_call", {"tool": "read", "args": {"file_path": "src/lexer.rs", "limit": 200}, "call_id": "c3"}),
        (7, "tool_result", {"call_id": "c3", "output": "fn next() {}\n" * 900, "exit_code": 0}),
        (8, "comment", {"body": WELD}),
        (9, "usage", {"input_tokens": 1_200_000, "output_tokens": 48_000, "cost_usd": 3.07, "message_id": "m1"}),
        (10, "error", {"message": "overloaded: try again in 30 s"}),
        (11, "checkpoint.saved", {"name": "before linking"}),
        (12, "comment", {"body": "Linking takes all memory; I will try the mold linker."}),
        (13, "tool_call", {"tool": "shell", "args": {"command": "cargo test -p parser"}, "call_id": "c4"}),
    )
