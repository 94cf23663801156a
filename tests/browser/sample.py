"""A small fleet with something of everything, for looking at the pages."""

from __future__ import annotations

from tests.browser.driving import Ledger

GRAMMAR = "The grammar is ported, 212 of 240 cases pass. The remaining 28 are error positions in multi-byte text."
WELD = "The flange weld holds. First sentence carries the information; fuzzed for ten minutes without a difference."
COLOURED = "\x1b[1m\x1b[32m   Compiling\x1b[0m parser v0.3.0\n\x1b[31merror[E0382]\x1b[0m: moved value\n"


def tell(ledger: Ledger) -> dict[str, str]:
    """Writes the fleet's story. The paths of a failed goal, a waiting one, a new one, a task and a session."""
    harbour, mole, lantern = (ledger.saddle(name) for name in ("harbour", "mole", "lantern"))
    brief = "Same grammar, same error messages, twice the speed."
    parser, run = ledger.started_goal(
        "Port the parser to Rust", "run-1", harbour, brief=brief, branch_name="goal/parser-rs"
    )
    part = str(ledger.post("/api/tasks", {"title": "Port the grammar", "goal_id": parser})["id"])
    mole.open("grammar-1", part, agent="codex", host="mole", model="large-2")
    mole.push("grammar-1", (0, "comment", {"body": "Reading the old parser."}))
    mole.push("grammar-1", (1, "usage", {"input_tokens": 88_000, "output_tokens": 3_100, "cost_usd": 0.44}))
    mole.result("grammar-1", "done", "All rules are ported.")
    _work(harbour, "run-1")
    for session, times in (("run-1", 40), ("run-1-again", 25), ("run-1-again-2", 25), ("run-1-again-3", 25)):
        if session != "run-1":
            harbour.open(session, run, resumed_from="run-1", agent="claude-code")
        for _ in range(times):
            harbour.result(session, "failed", "the harness collapsed\nsignal 9 while linking, 31.8 GB resident")
    orders, _ = ledger.started_goal("Move orders to the new schema", "orders-1", harbour)
    harbour.push(
        "orders-1",
        (0, "comment", {"body": "Backfill is at 62 %; next: switch reads."}),
        (1, "usage", {"input_tokens": 140_000, "output_tokens": 6_200, "cost_usd": 2.14}),
        (2, "waiting", {"question": "May I run the migration on staging?"}),
    )
    notes, _ = ledger.started_goal("Write the release notes for 4.2", "notes-1", lantern)
    lantern.push(
        "notes-1",
        (0, "usage", {"input_tokens": 61_000, "output_tokens": 2_000, "cost_usd": 0.31}),
        (1, "tool_call", {"tool": "shell", "args": {"command": "git log --oneline v4.1..HEAD"}}),
    )
    _import(ledger, mole)
    created = ledger.goal("Quiet the nightly jobs", brief="They page somebody every night, mostly for nothing.")
    ledger.post(f"/api/tasks/{ledger.post('/api/tasks', {'title': 'Fix flaky uploads'})['id']}/block")
    return {
        "failed-goal": f"/goals/{parser}",
        "waiting-goal": f"/goals/{orders}",
        "working-goal": f"/goals/{notes}",
        "created-goal": f"/goals/{created}",
        "run-task": f"/tasks/{run}",
        "session": "/sessions/run-1",
        "import-task": "/tasks/import",
        "import-session": "/sessions/import-1",
        "event": "/sessions/run-1?whole=7",
    }


def _import(owner: Ledger, mole: Ledger) -> None:
    """A session as agents' transcripts are: a prompt, answers, an edit, colours, and two children."""
    owner.post("/api/tasks", {"title": "Speed up the import", "id": "import"})
    mole.open("import-1", "import", agent="claude-code", host="mole", model="large-2", cwd="/srv/importer")
    for number, found in enumerate(
        ("The reader opens the file for every row.", "The writer commits after each row.")
    ):
        child = f"import-1-helper-{number}"
        mole.open(child, "import", agent="claude-code", host="mole", parent_session_id="import-1")
        mole.push(child, (0, "message", {"role": "assistant", "text": found}))
        mole.result(child, "done", found)
    edit = {
        "file_path": "importer/writer.py",
        "old_string": "for row in rows:\n    insert(row)\n    connection.commit()",
        "new_string": "for batch in batched(rows, 500):\n    insert_all(batch)\n    connection.commit()",
    }
    mole.push(
        "import-1",
        (
            0,
            "message",
            {"role": "user", "text": "The nightly import takes 40 minutes. Find out why, and make it fast."},
        ),
        (1, "message", {"role": "assistant", "text": "I profile it first, then look at the slowest query."}),
        (2, "tool_call", {"tool": "shell", "args": {"command": "python -m cProfile importer"}, "call_id": "c1"}),
        (3, "tool_result", {"call_id": "c1", "stdout": "1204551  \x1b[31m1911.3\x1b[0m  commit", "exit_code": 0}),
        (4, "tool_call", {"tool": "edit", "args": edit, "call_id": "c2"}),
        (5, "tool_result", {"call_id": "c2", "output": "importer/writer.py has been updated"}),
        (6, "tool_call", {"tool": "shell", "args": {"command": "pytest -q tests/importer"}, "call_id": "c3"}),
        (7, "tool_result", {"call_id": "c3", "stdout": "\x1b[31m1 failed\x1b[0m, 18 passed", "exit_code": 1}),
        (8, "message", {"role": "assistant", "text": "One test counted commits; it counts batches now."}),
        (9, "usage", {"input_tokens": 118_000, "output_tokens": 5_100, "cost_usd": 0.64, "message_id": "m1"}),
        (10, "comment", {"body": "The import takes 70 seconds now."}),
    )


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
