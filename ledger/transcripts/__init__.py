"""Transcripts of coding agents, read as sessions and events: one module for each format.

`finding` says what lies on a host and what it is, each format's `open_transcript(…)` gives a `Transcript`,
`delivering` brings it to a ledger, and `follow` does so for as long as it runs. A key `(session_id, seq)` depends on
what is read and its place alone, so reading a file again, or a longer copy of it from anywhere, gives the same keys.
"""
