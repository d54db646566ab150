"""Handlers that run after a fork: they keep the parent's connections unused and replace locks of lost threads."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class _Holder(Protocol):
    def after_fork(self) -> None: ...


_holders: weakref.WeakSet[_Holder] = weakref.WeakSet()
_left: list[object] = []


def register_after_fork(holder: _Holder) -> None:
    """From now on, in every process that is forked from this one, `holder.after_fork` is called first."""
    _holders.add(holder)


def keep_for_parent(connection: object) -> None:
    """Keep a connection that the parent uses for as long as the process lives: letting go of it might close it."""
    _left.append(connection)


def _after_fork() -> None:
    for holder in list(_holders):
        holder.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
