"""How much better than guessing is more than luck: in standard errors, before anything is claimed.

Known without a compiler, since pages speak of it as well.
"""

from __future__ import annotations

# Fewer errors than this better than guessing, and there is nothing to be found: the best of many
# ranks and λ looks better than guessing by luck alone.
BEYOND_LUCK = 3.0
# The model that asks vouches for a dimension when it is so many of a guesser's standard errors
# better than guessing, at questions that no model picked. While people are noisy it sees much
# earlier than the published fits that there is something. These answers are not independent, and
# guesses reach 4.6. What was found once is not lost again as easily.
VOUCHED, STILL_VOUCHED = 5.0, 2.5
