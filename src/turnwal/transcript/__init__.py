"""Transcripts: what a provider is sent, made from the surface; what is wrong with one; and what a reply becomes."""
