"""`Verification`: full checks of `index.sqlite` against its checksums."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sire_core.storage.checksums import check_table, damage
from sire_core.storage.database import Database, FileStamp
from sire_core.storage.rows import TABLES, is_right_vector

_WEEK = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Verified:
    """Stamp and time of a successful full verification.

    Attributes:
        stamp: What the file looked like.
        at: When all of it was read last, in seconds.
    """

    stamp: FileStamp
    at: int


class Verification:
    """Whether the content of an open file is verified."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sound = False
        self._verified = 0

    def of(self, stamp: FileStamp) -> Verified | None:
        """Return the verification of a file as it was when it was closed; None if not all of it is verified."""
        return Verified(stamp, self._verified) if stamp and self._sound else None

    def check(self) -> list[str]:
        """Read everything; return what is wrong. Empty if nothing is."""
        problems = self._db.check()
        if problems:
            return problems
        with self._db.snapshot():
            for table in TABLES:
                if not (problems and table.elsewhere):  # damage of what it refers to is found already
                    problems += check_table(self._db, table)
            wrong = sum(not is_right_vector(blob) for (blob,) in self._db.iterate("SELECT vector FROM units"))
        if wrong:
            problems.append(f"{wrong:,} vectors are not what was written")
        return problems

    def holds(self, known: Verified | None = None) -> bool:
        """Whether nothing has to be verified: see `require`, and nobody else has written since."""
        if self._db.path is None or (self._sound and self._db.trusted()):
            return True
        return known is not None and known.stamp == self._db.stamp() and 0 <= int(time.time()) - known.at < _WEEK

    def require(self, known: Verified | None = None) -> None:
        """Verify everything, once per process, before anything is derived from it and written."""
        if self._sound:
            return
        stamp, now = self._db.stamp(), int(time.time())
        if known is not None and known.stamp == stamp and 0 <= now - known.at < _WEEK:
            self._verified = known.at
        elif problems := self.check():
            raise damage(f"({problems[0]}) it")
        else:
            self._verified = now
        self._db.trust(stamp)
        self._sound = True
