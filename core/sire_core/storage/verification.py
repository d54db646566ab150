"""`Verification`: whether all that `index.sqlite` holds is what was written."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sire_core.storage.checksums import check_table, damage
from sire_core.storage.database import Database, FileStamp
from sire_core.storage.rows import TABLES, is_right_vector

__all__ = ["Verification", "Verified"]

_WEEK = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Verified:
    """All that the file held was right.

    Attributes:
        stamp: What the file looked like.
        at: When all of it was read last, in seconds.
    """

    stamp: FileStamp
    at: int


class Verification:
    """What is known of the soundness of an open file.

    Args:
        database: The file.
    """

    def __init__(self, database: Database) -> None:
        self._db = database
        self._sound = False
        self._verified = 0

    def of(self, stamp: FileStamp) -> Verified | None:
        """What is known of the file as it was when it was closed, if all that it holds is known to be right."""
        return Verified(stamp, self._verified) if stamp and self._sound else None

    def check(self) -> list[str]:
        """Read everything; what is wrong, in words. Empty when nothing is."""
        found = self._db.check()
        if found:
            return found
        with self._db.snapshot():
            for table in TABLES:
                found += check_table(self._db, table)
            wrong = sum(not is_right_vector(blob) for (blob,) in self._db.iterate("SELECT vector FROM units"))
        if wrong:
            found.append(f"{wrong:,} vectors are not what was written")
        return found

    def require(self, known: Verified | None = None) -> None:
        """Make sure of everything once before anything is derived from it and written.

        What was verified and not touched since is not read again, for a week: disks lose bits at rest, too.
        """
        if self._sound:
            return
        stamp, now = self._db.stamp(), int(time.time())
        if known is not None and known.stamp == stamp and 0 <= now - known.at < _WEEK:
            self._verified = known.at
        elif found := self.check():
            raise damage(f"({found[0]}) it")
        else:
            self._verified = now
        self._db.trust(stamp)
        self._sound = True
