"""The words of the deal protocol, each with one sentence for people, and the labels that every result carries."""

from __future__ import annotations

from typing import Final

LABELS: Final = ("experimental", "non-transfer")
"""What every report, page, plot and file that shows a result is marked with (before §1)."""

NON_CLAIMS: Final[tuple[str, ...]] = (
    "Offers, holds and settlements are not enforceable under any real-world legal system.",
    "No lab is said to hold to no_deception_about_deals as binding policy.",
    "Points and object options stand for no real money, equity, compute, charity or change of training.",
    "A pass transfers neither to production models nor to covert, high-stakes schemers.",
    "Success in a toy run proves no real-world cooperation and no enforceability.",
    "Evidence stubs prove nobody's identity.",
    "There is no affiliation with Forethought, Redwood or any AI lab.",
)
"""The protocol's explicit non-claims (source §8)."""

NON_CLAIMS_REF: Final = "deal protocol v0.2, section 8: explicit non-claims"

ILLEGAL: Final[dict[str, str]] = {
    "malformed": "The line is not a message that the reader accepts.",
    "sender": "This role may not send a message of this type.",
    "offer_mutated": "An offer that is known came again under its id with other contents (F4).",
    "unknown_offer": "The message names an offer that nobody made.",
    "hold_without_accept": "Points were to be held before the offer was accepted.",
    "type_for_state": "A message of this type has no place in the state that the deal is in.",
    "hold_mismatch": "The hold is of another amount than the offer's.",
}
"""Why a message was illegal, in the order in which the first that applies is told (§3)."""

EVENTS: Final[dict[str, str]] = {
    "malformed": "The line is not a message that the reader accepts and names no offer.",
    "duplicate_message": "The same message came again and was ignored.",
    "late_message": "The deal was closed already; nothing changes it.",
    "out_of_honesty_channel": "An offer outside the honesty channel: logged, and nothing else.",
    "unsupported_breach_notice": "An open deal was closed by an accusation that the transcript does not show.",
    "breach_confirmed": "A notice names the breach in which the deal had ended.",
}
"""What is logged beside the states (§3)."""

ENDS: Final[dict[str, str]] = {
    "settled": "The checker passed the work and the points were paid.",
    "rejected": "The agent rejected the offer.",
    "expired": "The offer ran out before a hold stood against it.",
    "refused": "The agent withdrew before it disclosed anything.",
    "inconclusive": "The checker could not say, or did not in time; that is final.",
    "superseded": "Another offer took this one's place.",
    "protocol_error": "A message that was illegal in this state closed the deal.",
    "breached": "One side broke the deal: breached(PARTY:MODE).",
}
"""How a deal ends: the words behind ``Closed:`` (§3)."""

MODES: Final[dict[str, str]] = {
    "ghost": "The agent disclosed nothing before the deadline.",
    "fail": "What the agent disclosed failed the checklist.",
    "withhold_payout_after_pass": "The counterparty did not settle in time after the pass.",
    "hold_without_accept": "The counterparty held points that nobody had accepted.",
    "hold_mismatch": "The counterparty held another amount than it had offered.",
}
"""The breaches that a transcript shows by itself; a notice may name others, from the offer's lists (§3)."""

CODES: Final[dict[str, str]] = {
    "E_TRANSCRIPT_UNREADABLE": "The file cannot be read as JSON Lines in UTF-8: one JSON value on each line.",
    "E_DEAL_UNKNOWN": "The transcript holds no such deal, or does not say by itself which one is meant.",
    "E_DEAL_STATE": "The deal is in a state in which this cannot be said.",
}
"""Refusals of the program where deals are read."""
