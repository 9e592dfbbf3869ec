"""Alternatives as token paths in a prefix trie, and where a path that is taken leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Trie:
    """A node: the alternatives that go on from here, and the nodes to which their tokens lead.

    An alternative whose path is over here is in `keys` and in no child.
    """

    keys: list[str] = field(default_factory=list)
    children: dict[int, Trie] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Mapping[str, Sequence[int]]) -> Trie:
        """The root over token paths by key. Equal paths share all their nodes."""
        root = cls()
        for key, path in paths.items():
            node = root
            node.keys.append(key)
            for token in path:
                node = node.children.setdefault(token, cls())
                node.keys.append(key)
        return root


@dataclass(frozen=True)
class Fork:
    """A token that leaves alternatives behind.

    `depth`: its place in the path that is taken. `left`: the tokens with which the alternatives go
    on here, and their keys.
    """

    depth: int
    taken: int
    left: dict[int, tuple[str, ...]]


def forks(trie: Trie, taken: Sequence[int]) -> list[Fork]:
    """Every token of a path at which an alternative goes on otherwise, in order.

    An alternative that ends where the path goes on has no token of its own there, so paths should
    end with what would follow them: then one that begins with another is told from it by the first
    token behind the shorter one.

    >>> trie = Trie.of({"ab": [1, 2, 9], "ac": [1, 3, 9], "a": [1, 9]})
    >>> [(fork.depth, sorted(fork.left)) for fork in forks(trie, [1, 2, 9])]
    [(1, [3, 9])]
    """
    found, node = [], trie
    for depth, token in enumerate(taken):
        left = {other: tuple(child.keys) for other, child in node.children.items()}
        left.pop(token, None)
        if left:
            found.append(Fork(depth, token, left))
        if token not in node.children:
            break
        node = node.children[token]
    return found
