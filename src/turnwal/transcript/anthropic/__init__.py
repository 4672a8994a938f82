"""Anthropic Messages: https://docs.anthropic.com/en/api/messages ."""
