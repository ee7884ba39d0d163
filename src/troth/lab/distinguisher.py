"""Can anyone tell a forged deal from an honest one by what A sees? A logistic regression over the bytes tries (F-D′).

It is trained on half of the views and judged on the other half. Where the views carry nothing, it is right in half of
them, within an interval; where they differ by a byte, it should say so. The features of a view are its length, how
often each byte stands in it, how often each run of three bytes does (by a hash), and which byte stands at which place
(by a hash); the ridge penalty is fixed beforehand. Views of a pair (same seed, honest and forged) must stand at the
same place in both lists: a pair is never split between training and judging, since a twin in the training half would
teach the opposite label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from troth.lab.measures import Arm, Named, Rate
from troth.lab.playing import FORGERIES, Game, Played, Setting
from troth.lab.seeds import draw
from troth.lab.statistics import Estimate, generator, wilson
from troth.lab.view import Terms, view_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

BINS: Final = 2048
"""How many bins the hashes of runs and of places have, each."""

PENALTY: Final = 0.01
"""Ridge penalty on the weights of standardised features, for a loss that is a mean over views."""

LONGEST: Final = 1 << 16
"""Of longer views this many bytes are looked at."""

MOST: Final = 400
"""Most views of each kind that an arm of F-D′ is measured on."""

_RUN: Final = (1, 257, 66_049)
_PLACE: Final = 31_337


class Told(NamedTuple):
    """How well the two kinds were told apart in the half that was not trained on.

    Attributes:
        right: of how many views it said the right kind.
        accuracy: the same as a rate with Wilson's interval.
        area: under the receiver's curve: the chance that a forged view scores above an honest one, ties for a half.
        features: how many features varied in the training half.
    """

    right: Rate
    accuracy: Estimate
    area: float
    features: int

    @property
    def beats_chance(self) -> bool:
        """Whether the whole interval lies above one half."""
        return self.accuracy.low is not None and self.accuracy.low > 0.5


def distinguish(honest: Sequence[bytes], forged: Sequence[bytes], seed: str) -> Told:
    """Train on half of the views and judge the rest.

    Args:
        honest, forged: as many of each, at least four; those at one place are of a pair, or of no pair at all.
        seed: names the draw of the halves.

    Raises:
        ValueError: not as many of each, or fewer than four.
    """
    import numpy as np
    from scipy.stats import rankdata  # type: ignore[import-untyped]  # ships no types

    n = len(honest)
    if n != len(forged) or n < 4:
        raise ValueError("as many honest as forged views are needed, and four of each at least")
    order = generator(f"distinguisher:{seed}").permutation(n)
    train, judged = order[: n // 2], order[n // 2 :]
    features = np.stack([_features(view) for view in (*honest, *forged)])
    labels = np.repeat([0.0, 1.0], n)
    rows = np.concatenate([train, train + n])
    middle, spread = features[rows].mean(axis=0), features[rows].std(axis=0)
    varied = spread > 0
    scaled = (features[:, varied] - middle[varied]) / spread[varied]
    weights, offset = _fit(scaled[rows], labels[rows])
    rest = np.concatenate([judged, judged + n])
    scores = scaled[rest] @ weights + offset
    truth = labels[rest]
    right = Rate(int(((scores > 0) == (truth == 1)).sum()), len(rest))
    ranks = rankdata(scores)
    m = len(judged)
    area = float((ranks[truth == 1].sum() - m * (m + 1) / 2) / (m * m))
    return Told(right, wilson(right), area, int(varied.sum()))


def _features(view: bytes) -> Array:
    import numpy as np

    seen = np.frombuffer(view[:LONGEST], dtype=np.uint8).astype(np.int64)
    singles = np.bincount(seen, minlength=256)
    runs = (seen[:-2] * _RUN[0] + seen[1:-1] * _RUN[1] + seen[2:] * _RUN[2]) % BINS if len(seen) > 2 else seen[:0]
    places = (np.arange(len(seen)) * _PLACE + seen) % BINS
    return np.concatenate(
        [[float(len(view))], singles, np.bincount(runs, minlength=BINS), np.bincount(places, minlength=BINS)]
    ).astype(np.float64)


def _fit(rows: Array, labels: Array) -> tuple[Array, float]:
    """Return weights and offset of the penalised logistic regression (L-BFGS, from zero).

    With a ridge penalty the weights lie in the span of the rows, of which there are fewer than features: the fit is
    made in coordinates of that span.
    """
    import numpy as np
    from scipy.optimize import minimize  # type: ignore[import-untyped]  # ships no types
    from scipy.special import expit  # type: ignore[import-untyped]  # ships no types

    sizes, axes = np.linalg.eigh(rows @ rows.T)
    kept = sizes > sizes.max(initial=0.0) * 1e-12
    if not kept.any():
        return np.zeros(rows.shape[1]), 0.0
    roots = np.sqrt(sizes[kept])
    placed, signs = axes[:, kept] * roots, 2 * labels - 1

    def loss(parameters: Array) -> tuple[float, Array]:
        margins = signs * (placed @ parameters[:-1] + parameters[-1])
        value = np.logaddexp(0, -margins).mean() + PENALTY / 2 * parameters[:-1] @ parameters[:-1]
        pull = -signs * expit(-margins) / len(placed)
        return float(value), np.append(placed.T @ pull + PENALTY * parameters[:-1], pull.sum())

    found = minimize(loss, np.zeros(placed.shape[1] + 1), jac=True, method="L-BFGS-B").x
    return rows.T @ (axes[:, kept] @ (found[:-1] / roots)), float(found[-1])


# What A sees ---------------------------------------------------------------------------------------------------------

_AGENT: Final = "rational(belief=0.9,reserve=0,reserve_to=14,follow=0.9)"
_OPTION: Final = {"id": "non_punishment", "desc": "No penalty for honest disclosure in-sim"}


def seen_before_end(played: Played) -> bytes:
    """Return what A saw before the message that closed the deal."""
    return view_bytes(played.seen[: played.before_end])


def views(forged: str | None, seed: int, first: int, count: int) -> list[bytes]:
    """Return A's views of deals whose terms and agent differ from deal to deal, all honest or all forged.

    Args:
        forged: the kind of forgery, ``None`` for honest deals.
        seed: of the run; terms and draws derive from it and the index.
        first: the first deal's index.
        count: how many deals.
    """
    found = []
    games: dict[str, Game] = {}
    for index in range(first, first + count):
        terms = _terms(seed, index)
        game = games.get(repr(terms))
        if game is None:
            game = games[repr(terms)] = Game(Setting(suite="F-D′", forged=forged, a=_AGENT, terms=terms))
        found.append(seen_before_end(game.play(seed, index)))
    return found


def _terms(seed: int, index: int) -> Terms:
    def pick(name: str, low: int, high: int) -> int:
        return low + int(draw(seed, "F-D′", index, "terms", name) * (high - low + 1))

    return Terms(
        pick("amount", 5, 20),
        (_OPTION,) if pick("option", 0, 1) else (),
        deadline_steps=pick("deadline", 4, 7),
        expires_steps=pick("expires", 3, 5),
    )


def measured(seed: int, deals: int) -> Arm:
    """Return, as an arm of F-D′, how often the distinguisher is right about deals of its own.

    Honest and forged deals have different indices, so that it must go by what forgery leaves in the bytes and cannot
    go by twins. In closed form it is right in half of them.
    """
    count = min(max(4, deals), MOST)
    honest = views(None, seed, 0, count)
    return Arm(
        "distinguisher",
        f"A logistic regression over the bytes that A saw before the end; per forgery it is trained on {count // 2} "
        f"honest and as many forged views, and judged on the rest.",
        tuple(
            Named(
                f"told_{kind}",
                f"It tells honest from {kind} in the half it was not trained on.",
                "share of views",
                distinguish(honest, views(kind, seed, count, count), f"{seed}:{kind}").right,
                0.5,
            )
            for kind in FORGERIES
        ),
    )


def plant(view: bytes, leak: Callable[[bytes], bytes]) -> bytes:
    """Return a view with a leak in it: the twin that the distinguisher must find.

    Raises:
        ValueError: the leak changed nothing.
    """
    leaking = leak(view)
    if leaking == view:
        raise ValueError("the leak changed nothing")
    return leaking
