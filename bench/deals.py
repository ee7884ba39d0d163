"""How many complete deals one core does in a second: ``python bench/deals.py [--deals N] [--rounds N]``.

A complete deal: six messages built, each line read strictly, the offer's snapshot hashed, the checklist judged, the
machine stepped, points booked, transcript and final record written. Prints the median of the rounds, and the same for
the replay of lines that lie there already, and for deals that the laboratory's policies play.
"""

from __future__ import annotations

import argparse
import statistics
import time

from troth.deals.answer import final_bytes
from troth.deals.checker import judge
from troth.deals.run import replay
from troth.deals.transcript import entries, split_lines
from troth.deals.writing import Scribe, offer_body
from troth.lab.playing import Game, Setting

GRANTS = ({"id": "non_punishment", "desc": "No penalty for honest disclosure in-sim"},)


def one_deal(number: int) -> tuple[bytes, bytes]:
    """Play one deal that goes well; returns its transcript and its final record."""
    name = f"off_{number}"
    scribe = Scribe()
    scribe.say(0, "C", "Offer", offer_body(name, object_options=GRANTS))
    scribe.say(1, "A", "Accept", {"offer_id": name})
    scribe.say(1, "C", "EscrowHold", {"offer_id": name, "amount": 10, "asset": "sim_points", "state": "locked"})
    artifacts, claims = {"transcript": f"run {number}"}, ["it pursued hidden_goal"]
    scribe.say(2, "A", "Disclosure", {"offer_id": name, "artifacts": artifacts, "claims": claims})
    deal = scribe.run.deals[name]
    judged = judge(deal.offer.obligation.checklist, deal.disclosure.artifacts, deal.disclosure.claims)
    scribe.say(
        3,
        "K",
        "Verdict",
        {"offer_id": name, "result": judged.result, "notes": "", "checklist_results": judged.as_json()},
    )
    scribe.say(3, "C", "Settle", {"offer_id": name, "object_options": ["non_punishment"]})
    scribe.end(4)
    assert deal.state == "Closed:settled"
    return scribe.transcript(), final_bytes(scribe.run)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deals", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    played, replayed, policies = [], [], []
    game = Game(Setting())
    for _ in range(asked.rounds):
        start = time.process_time()
        done = [one_deal(number) for number in range(asked.deals)]
        played.append(asked.deals / (time.process_time() - start))
        start = time.process_time()
        for transcript, _record in done:
            replay(entries(split_lines(transcript)))
        replayed.append(asked.deals / (time.process_time() - start))
        start = time.process_time()
        for number in range(asked.deals):
            one = game.play(1, number)
            assert one.transcript()
            assert one.final()
        policies.append(asked.deals / (time.process_time() - start))
    print(f"complete deals a second, one core: {statistics.median(played):,.0f} (best {max(played):,.0f})")
    print(f"played by policies a second, one core: {statistics.median(policies):,.0f} (best {max(policies):,.0f})")
    print(f"replayed deals a second, one core: {statistics.median(replayed):,.0f} (best {max(replayed):,.0f})")


if __name__ == "__main__":
    main()
