"""Settings of a study of each kind, for tests of what is the same for all of them."""

from __future__ import annotations

KINDS = {
    "triplet": '[trial]\nkind = "triplet"\n',
    "choose-2-of-5": '[trial]\nkind = "choose"\noptions = 5\npick = 2\n',
    "rank-2-of-4": '[trial]\nkind = "rank"\noptions = 4\npick = 2\n',
    "odd-one-out": '[trial]\nkind = "odd-one-out"\n',
}
