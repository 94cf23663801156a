"""The incident sweep: reads what agents left behind, has a model judge what looks like damage, keeps a register.

runner.py          a run, in its order, and why nothing is lost and nothing judged twice
config.py          what it is told; assembling.py puts the parts together from it
sources/           sessions of agents and of a running ledger     } model.py is what they
prefilter/         the moments of them that may be damage         } hand to each other
scanning.py        one look at all sources, within a budget
judging/           the model: prompt, backends, verdict
filing.py          from a verdict to a plan (pure)
register/          the files that people read
repository.py      the narrow git around them
journal.py         its own events, and the state that they come to; seen_list.py outlives that
guard.py           the one gate to the disk; locking.py
commands.py        runs programs; hooks.py tells others; ending.py says how it went
rehearsing.py, founding.py, showing*.py, installing.py     what the other subcommands do
"""
