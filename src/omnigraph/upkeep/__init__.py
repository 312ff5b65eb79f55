"""Upkeep: what keeps a graph fast and sound as it grows. Never changes what a query answers.

self_care.py   compacts on the way: small pieces that many small writes left, when a cheap
               counter says so
verify.py      looks at everything and says what is wrong; findings.py is what it reports
"""
