"""Where a sweep's sessions come from, read by the same importers as `ledgerd watch`: `files` (claude-code, codex,
gemini), `databases` (opencode) and `ledger` (a running service). `opening` makes them from their settings.
"""
