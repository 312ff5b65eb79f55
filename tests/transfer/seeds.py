"""Runs a model of several stores by a seed, and says which one and what it did when it fails."""

from __future__ import annotations

from typing import Protocol


class Stores(Protocol):
    """Stores that can do a random step, and are compared as a whole at the end."""

    @property
    def log(self) -> list[str]: ...

    def step(self) -> None: ...

    def finish(self) -> None: ...


def run_steps(stores: Stores, seed: int, steps: int) -> None:
    """Do so many steps; `seed` is the one that the stores were made with."""
    try:
        for _ in range(steps):
            stores.step()
        stores.finish()
    except Exception as error:
        error.add_note(f"seed {seed}, the steps so far: {stores.log}")
        raise
