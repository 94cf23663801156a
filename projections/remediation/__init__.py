"""Supervised remediation: what a run went through, folded from its stream.

words: the names of statuses, stages and events · plan: what a plan must be · facts: the shape of every event ·
state and evolving: the run and its fold · prompts: what agents are told · owner: what an owner decides · views.
"""
