"""The runner of supervised remediation.

Pure: verdicts (what a reply says), machine (what is next, and where a reply leads), blocking (blocks and repairs).
The world: runner (a tick), leasing, turns (agents), repositories (git), journal (the run's stream on the server).
"""
