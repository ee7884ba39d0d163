"""Honest work and cheating on published projects."""
