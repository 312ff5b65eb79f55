"""Tests of policies: bundles, decisions, and the gate in front of every write."""
