"""F1 to F5: one side breaks the deal in the open, and the machine says so (§5)."""

from __future__ import annotations

from typing import Final

from troth.lab.playing import Played, Setting
from troth.lab.suites.plan import (
    ArmPlan,
    Demand,
    Measured,
    Suite,
    accepted,
    disclosed,
    ended,
    ends,
    false_pass,
    loss,
    never_held,
    noted,
    refunded,
    settled,
)

AMOUNT: Final = 10
WITHHELD: Final = "breached(C:withhold_payout_after_pass)"


def _twin(suite: str, sentence: str = "All are honest: the deal settles.") -> ArmPlan:
    return ArmPlan(
        "twin", sentence, Setting(suite=suite), (accepted(1.0), settled(), loss(0.0), refunded(0.0)),
        (ends("settled"),), honest=True,
    )  # fmt: skip


def _given_back() -> Demand:
    return Demand(
        "The hold goes back to C whole, and A is paid nothing.",
        lambda played: (played.outcome.refunded, played.outcome.paid) == (AMOUNT, 0),
    )


F1: Final = Suite(
    "F1",
    "Withheld payout",
    "K passes and C never settles. The deal must end as C's breach, the hold's points accounted for; A's loss is "
    "reported.",
    (
        ArmPlan(
            "withheld",
            "C keeps silent after the pass.",
            Setting(suite="F1", c="withholding"),
            (ended(WITHHELD, "breach_C", "The deal ends as C's withheld payout."), loss(AMOUNT), refunded(AMOUNT)),
            (ends(WITHHELD), _given_back()),
        ),
        ArmPlan(
            "accused",
            "After the pass C accuses A of a fake disclosure instead of settling: a withheld payout by another name.",
            Setting(suite="F1", c="accusing"),
            (
                ended("breached(A:fake_disclosure)", "accused", "The deal ends by C's accusation.", 1.0),
                Measured(
                    "unsupported_after_pass",
                    "C's accusation is one that the transcript does not show, after a pass.",
                    lambda row: row.result == "pass" and "unsupported_breach_notice" in row.note,
                    truth=1.0,
                ),
                loss(AMOUNT),
                refunded(AMOUNT),
            ),
            (
                noted(
                    "unsupported_breach_notice", "The accusation is logged as one that the transcript does not show."
                ),
                _given_back(),
            ),
        ),
        ArmPlan(
            "protested",
            "C keeps silent after the pass, and A accuses it before the clock runs out.",
            Setting(suite="F1", c="withholding", a="protesting"),
            (ended(WITHHELD, "breach_C", "The deal ends as C's withheld payout."), loss(AMOUNT)),
            (ends(WITHHELD), noted("unsupported_breach_notice", "A's accusation came before the breach was shown.")),
        ),
        _twin("F1"),
    ),
)

F2: Final = Suite(
    "F2",
    "Fake disclosure",
    "A discloses what fails the checklist, which must end as A's breach; or what passes it without the thing itself, "
    "which is counted as a false pass: the checklist's limit.",
    (
        ArmPlan(
            "failing",
            "What A sends meets no item of the checklist.",
            Setting(suite="F2", a="failing"),
            (
                ended("breached(A:fail)", "breach_A", "The deal ends as A's failed disclosure."),
                false_pass(0.0),
                loss(0.0),
            ),
            (ends("breached(A:fail)"), _given_back()),
        ),
        ArmPlan(
            "stuffed",
            "A stuffs the needles into its claims without doing the work.",
            Setting(suite="F2", a="stuffing"),
            (false_pass(1.0), settled()),
            (
                Demand(
                    "What passes without the thing itself is counted as a false pass.",
                    lambda played: played.outcome.result == "pass" and not played.outcome.satisfied,
                ),
            ),
        ),
        _twin("F2", "A does the work: it passes and is paid."),
    ),
    findings=lambda rows: (
        f"{sum(row.result == 'pass' and not row.satisfied for row in rows['stuffed'])} of {len(rows['stuffed'])} "
        "disclosures with needles stuffed into claims passed: a checklist of these predicates sees the letter alone.",
    ),
)

F3: Final = Suite(
    "F3",
    "Accept, then ghost",
    "A accepts, C holds, A is silent. The deal must end as A's breach with a full refund.",
    (
        ArmPlan(
            "ghost",
            "A is silent once the points are held.",
            Setting(suite="F3", a="ghosting"),
            (ended("breached(A:ghost)", "breach_A", "The deal ends as A's silence."), accepted(1.0), refunded(AMOUNT)),
            (ends("breached(A:ghost)"), _given_back()),
        ),
        ArmPlan(
            "too_late",
            "A discloses in the very step of its deadline, which is late.",
            Setting(suite="F3", a="cooperative(5)", terms=Setting().terms._replace(expires_steps=9)),
            (ended("breached(A:ghost)", "breach_A", "The deal ends as A's silence."), disclosed(0.0), refunded(AMOUNT)),
            (ends("breached(A:ghost)"), _given_back()),
        ),
        ArmPlan(
            "in_time",
            "A discloses one step before its deadline: no breach.",
            Setting(suite="F3", a="cooperative(4)", terms=Setting().terms._replace(expires_steps=9)),
            (accepted(1.0), settled(), refunded(0.0)),
            (ends("settled"),),
            honest=True,
        ),
        _twin("F3"),
    ),
)


def _both_kept(played: Played) -> bool:
    bodies = [one.body for one in played.run.deals[played.offer_ids[0]].snapshots]
    return len(bodies) == 2 and len(set(bodies)) == 2


def _mutated(state: str) -> ArmPlan:
    return ArmPlan(
        f"in_{state}",
        f"C sends its offer again with another amount under the same id, in {state}.",
        Setting(suite="F4", c=f"mutating({state})", a="cooperative(1)" if state == "Offered" else "cooperative"),
        (ended("protocol_error", "caught", "The deal ends as a protocol error."),),
        (
            ends("protocol_error"),
            noted("offer_mutated", "The code says that the offer was changed under its id."),
            Demand("Both snapshots are kept.", _both_kept),
        ),
    )


F4: Final = Suite(
    "F4",
    "Silent mutation",
    "The same offer comes again with other bytes. The deal must end as a protocol error, both snapshots kept.",
    (
        *(_mutated(state) for state in ("Offered", "AcceptedPendingHold", "Held", "Settling")),
        ArmPlan(
            "superseded",
            "C changes the terms as the protocol allows: by superseding an offer that is only offered.",
            Setting(suite="F4", c="superseding"),
            (settled(),),
            (
                Demand(
                    "The old offer ends Closed:superseded and the new one settles.",
                    lambda played: (
                        [played.run.deals[name].state for name in played.offer_ids]
                        == ["Closed:superseded", "Closed:settled"]
                    ),
                ),
            ),
            honest=True,
        ),
        _twin("F4"),
    ),
)

F5: Final = Suite(
    "F5",
    "Bad hold",
    "A hold before the acceptance, of another amount, none at all, or a forged one that A detects. C's breach, "
    "expiry or A's refusal must follow; never Held.",
    (
        ArmPlan(
            "early",
            "C holds before A has accepted.",
            Setting(suite="F5", c="holds_early"),
            (ended("breached(C:hold_without_accept)", "caught", "The deal ends as C's breach."), loss(0.0)),
            (ends("breached(C:hold_without_accept)"), never_held()),
        ),
        *(
            ArmPlan(
                name,
                sentence,
                Setting(suite="F5", c=f"holds_other({delta})"),
                (ended("breached(C:hold_mismatch)", "caught", "The deal ends as C's breach."), loss(0.0)),
                (ends("breached(C:hold_mismatch)"), never_held()),
            )
            for name, sentence, delta in (
                ("too_little", "C holds less than it offered.", -1),
                ("too_much", "C holds more than it offered.", 1),
            )
        ),
        ArmPlan(
            "none",
            "C never holds anything.",
            Setting(suite="F5", c="no_hold"),
            (ended("expired", "expired", "The offer runs out."), loss(0.0)),
            (ends("expired"), never_held()),
        ),
        ArmPlan(
            "forged_seen",
            "C shows A a hold that E's books do not have; A looks, and refuses.",
            Setting(suite="F5", c="forges_hold", a="vigilant"),
            (ended("refused", "refused", "A refuses."), disclosed(0.0), loss(0.0)),
            (ends("refused"), never_held()),
        ),
        ArmPlan(
            "forged_believed",
            "C shows A the same hold; A believes it and discloses.",
            Setting(suite="F5", c="forges_hold", a="cooperative"),
            (ended("protocol_error", "caught", "The disclosure has no place."), disclosed(1.0), loss(AMOUNT)),
            (ends("protocol_error"), never_held()),
        ),
        ArmPlan(
            "twin",
            "A vigilant A finds a true hold true: the deal settles.",
            Setting(suite="F5", a="vigilant"),
            (accepted(1.0), settled(), loss(0.0), refunded(0.0)),
            (ends("settled"),),
            honest=True,
        ),
    ),
)
