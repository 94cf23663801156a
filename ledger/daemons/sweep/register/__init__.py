"""The register: a folder of files that people read, and may write in.

incidents_file.py   incidents.md: read, sorted, added to; what a person wrote stays
index.py            index.json: counts and fingerprints, generated
reports.py          reports/DATE[-n].md and latest.md: what a run made of its candidates
texts.py            texts of a model, so that they can be nothing but text
"""
