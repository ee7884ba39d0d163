"""Who drives the run and how independent a reviewer is, a second time, from the text of §10."""

from __future__ import annotations

OFF = {"", "0", "false", "off", "no"}
MAKERS = {"claude": "anthropic", "codex": "openai", "gemini": "google"}


def host(env: dict[str, str]) -> tuple[str, str, str]:
    """Return (host, method, confidence)."""
    claude_strong = env.get("CLAUDECODE") == "1" or env.get("CLAUDE_SURFACE") in {"cowork", "chat", "sandbox"}
    claude_weak = any(
        env.get(name, "0") not in OFF for name in ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_COWORK", "CLAUDE_CHAT_SANDBOX")
    )
    found = set()
    if claude_strong or claude_weak:
        found.add("claude")
    if env.get("GEMINI_CLI") == "1":
        found.add("gemini")
    if env.get("CODEX_SANDBOX") == "seatbelt" or env.get("CODEX_SANDBOX_NETWORK_DISABLED") == "1":
        found.add("codex")
    cursor = env.get("CURSOR_AGENT") == "1"

    said = env.get("IMPASSE_HOST", "")
    if said != "":
        if said not in {"claude", "codex", "gemini", "cursor", "other"}:
            return "unknown", "conflict", "none"
        if found and found != {said}:
            return "unknown", "conflict", "none"
        return said, "override", "asserted"
    if len(found) >= 2 or (len(found) == 1 and cursor):
        return "unknown", "conflict", "none"
    if found == {"claude"}:
        return "claude", "markers", "strong" if claude_strong else "heuristic"
    if found == {"gemini"}:
        return "gemini", "markers", "strong"
    if found == {"codex"}:
        return "codex", "markers", "heuristic"
    return ("cursor", "markers", "none") if cursor else ("unknown", "nothing", "none")


def tier(host_name: str, provider: str | None) -> str:
    """Return the tier of a reviewer of that provider."""
    mine = MAKERS.get(host_name)
    if mine is None:
        return "undetermined"
    if provider is None:
        return "undetermined"
    return "same_provider" if provider == mine else "cross_provider"
