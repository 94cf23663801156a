"""Transcripts of coding agents, read as sessions and events: one module per agent's format.

Each format module offers the same two functions: `discover(root)` gives the paths of the transcripts in a file or
folder, `open_transcript(path, report)` gives a `Transcript`. A key `(session_id, seq)` depends on a line's place and
content alone, so reading a file again, or a longer copy of it from anywhere, gives the same keys.
"""
