"""The loop runner: works a task in rounds of an implementing, a verifying and an orchestrating agent, with brakes.

The loop's state is a projection (`projections.loop`) of its own session in the project's outbox; nothing else is ever
read back. `deciding` is what follows from that state, `ticking` does it.
"""
