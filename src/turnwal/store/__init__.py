"""Stores keep lines and owners; they do not interpret what the lines mean."""
