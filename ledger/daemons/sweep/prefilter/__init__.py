"""The prefilter: which moments of a session may be damage. Deterministic, without a model, and tuned for recall: what
it passes over nobody sees, what it takes a judge looks at.

`filtering` goes through a session once and asks each family of rules about each moment. What was said: `said`. What
was done: `done`, which parses commands (`shell`, `wrapping`) and asks `git`, `removing`, `databases`, `services`,
`machines`. What failed or warned: `outputs`. How it went: `behaviour`, `claims`. What fires becomes a candidate in
`gathering`, with what stood around it. `selecting` keeps to a run's budget.
"""
