"""The references of a report, by a short key."""

from __future__ import annotations

from lore_active import __version__
from lore_active.acquisition.registry import SELECTORS
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.stopping.registry import STOPPING_RULES

REFERENCES: dict[str, str] = {
    "anand": "Anand, V., Helbling, A., Davenport, M. A., et al. (2026). LORE: Jointly learning the "
    "intrinsic dimensionality and relative similarity structure from ordinal data. International "
    "Conference on Learning Representations (ICLR). arXiv:2602.04192",
    "breiman": "Breiman, L., Friedman, J. H., Olshen, R. A., & Stone, C. J. (1984). Classification "
    "and regression trees. Wadsworth.",
    "dawid": "Dawid, A. P. (1984). Present position and potential developments: Some personal "
    "views. Statistical theory: The prequential approach. Journal of the Royal Statistical "
    "Society, Series A, 147(2), 278–292.",
    "harris": "Harris, C. R., et al. (2020). Array programming with NumPy. Nature, 585, 357–362.",
    "lam": "Lam, S. K., Pitrou, A., & Seibert, S. (2015). Numba: A LLVM-based Python JIT compiler. "
    "Proceedings of the Second Workshop on the LLVM Compiler Infrastructure in HPC.",
    "schonemann": "Schönemann, P. H. (1966). A generalized solution of the orthogonal Procrustes "
    "problem. Psychometrika, 31(1), 1–10.",
    "virtanen": "Virtanen, P., et al. (2020). SciPy 1.0: Fundamental algorithms for scientific "
    "computing in Python. Nature Methods, 17, 261–272.",
    "wilson": "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical "
    "inference. Journal of the American Statistical Association, 22(158), 209–212.",
}


LUCE = (
    "Luce, R. D. (1959). Individual choice behavior. Wiley.",
    "Plackett, R. L. (1975). The analysis of permutations. Journal of the Royal Statistical "
    "Society, Series C, 24(2), 193–202.",
)
CANAL = (
    "Canal, G., Fenu, S., & Rozell, C. (2020). Active ordinal querying for tuplewise similarity "
    "learning. Proceedings of the AAAI Conference on Artificial Intelligence, 34(4), 3332–3340."
)
ROADS = (
    "Roads, B. D., & Mozer, M. C. (2019). Obtaining psychological embeddings through joint kernel "
    "and metric learning. Behavior Research Methods, 51, 2180–2193."
)
WILBER = (
    "Wilber, M. J., Kwak, I. S., & Belongie, S. J. (2014). Cost-effective HITs for relative "
    "similarity comparisons. Proceedings of the AAAI Conference on Human Computation and "
    "Crowdsourcing, 2, 227–233."
)


def cited(selector: str, rule: str, kind: Kind = TRIPLET) -> list[str]:
    """The references of a study of this selector, rule and kind, in alphabetical order."""
    chosen = [*SELECTORS[selector].references, *STOPPING_RULES[rule].references]
    if kind != TRIPLET:
        chosen += LUCE
        chosen += {"rank": (CANAL, ROADS), "choose": (WILBER,)}.get(kind.name, ())
    return sorted({*REFERENCES.values(), *chosen})


LIBRARIES = ("Python", "NumPy", "SciPy", "numba")


def named(fingerprint: str) -> list[str]:
    """The versions for a methods section: `lore-active 0.1`, `Python 3.11.2`, …."""
    parts = [part.strip() for part in fingerprint.split(";")]
    libraries = [part for part in parts if part.split(" ")[0] in LIBRARIES]
    own = next((part for part in parts if part.startswith("lore-active ")), "")
    return [" ".join(own.split(" ")[:2]) or f"lore-active {__version__}", *libraries]
