"""What agents tell by their hooks: `ledgerd hook claude-code | codex | gemini`.

    agent ─ hook ─ the spool ─ carrier ─ outbox ─ the ledger

An agent runs a hook at every step and waits until it ends, so the hook only puts its input, as it came, at the end
of a file beside the outbox (`spool`), sees to it that a carrier runs, and is gone: it loads nothing else, prints
nothing and ends with 0 whatever happens (`receiving`). What went wrong is noted beside the outbox (`troubles`). The
carrier is one process for each outbox, detached, and ends when there has been nothing to do for a while (`carrying`):
it makes events of what lies in the spool (`telling`, and a module for each agent) and sends them. It finds the server
in the environment of the hook that started it, and reads no `ledgerd.toml`: an agent works in folders that others
have filled, and none of them may say where its words go.

Sessions. Hooks write a session of their own, `SESSION.hook`, since a key has one writer: the agent's transcript, if
somebody reads it, is SESSION. Both are opened on one task, and `same_run_as` says that they report one run. The seq
of an event is when its hook ran (`spool.TICK_NS`), so a spool that is read again after a crash makes the same events.
"""
