"""Mistral chat completions: https://docs.mistral.ai/api/ ."""
