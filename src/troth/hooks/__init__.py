"""Hooks: what agents' own tools call, in their words and with their exit statuses; no rule lives here."""
