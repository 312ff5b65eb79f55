"""Numbers, not tests: what operations cost, beside what they cost the last time."""
