"""What a model makes of the candidates: one call, on standard input, and a verdict that is checked before it counts.

prompt.py      what the judge is told
backends.py    the claude command, an OpenAI-compatible endpoint, any command
verdict.py     what it answered, read and checked
"""
