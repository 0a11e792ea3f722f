"""The references of a report, by a short key."""

from __future__ import annotations

from lore_active import __version__
from lore_active.acquisition.registry import SELECTORS
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


def cited(selector: str, rule: str) -> list[str]:
    """The references of a study with this selector and rule, in alphabetical order."""
    chosen = (*SELECTORS[selector].references, *STOPPING_RULES[rule].references)
    return sorted({*REFERENCES.values(), *chosen})


LIBRARIES = ("Python", "NumPy", "SciPy", "numba")


def named(fingerprint: str) -> list[str]:
    """The versions for a methods section: `lore-active 0.1`, `Python 3.11.2`, …."""
    parts = [part.strip() for part in fingerprint.split(";")]
    libraries = [part for part in parts if part.split(" ")[0] in LIBRARIES]
    own = next((part for part in parts if part.startswith("lore-active ")), "")
    return [" ".join(own.split(" ")[:2]) or f"lore-active {__version__}", *libraries]
