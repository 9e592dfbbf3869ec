"""Constants A and B of label propensities (Jain et al. 2016), by data set.

Published for data sets, not for sources of text: LF-WikiSeeAlso-320K is made of Wikipedia and has
the usual constants all the same, not those of Wikipedia-500K.
"""

_USUAL = (0.55, 1.5)
_OWN = {
    "Wikipedia-500K": (0.5, 0.4),
    "WikiLSHTC-325K": (0.5, 0.4),
    "LF-Wikipedia-500K": (0.5, 0.4),
    "Amazon-670K": (0.6, 2.6),
    "Amazon-3M": (0.6, 2.6),
    "LF-Amazon-131K": (0.6, 2.6),
    "LF-AmazonTitles-131K": (0.6, 2.6),
    "LF-AmazonTitles-1.3M": (0.6, 2.6),
}


def propensity_constants(name: str) -> tuple[float, float]:
    """A and B of a data set.

    >>> propensity_constants("LF-WikiSeeAlso-320K"), propensity_constants("LF-Wikipedia-500K")
    ((0.55, 1.5), (0.5, 0.4))
    """
    return _OWN.get(name, _USUAL)
