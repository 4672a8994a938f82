"""The tests of turnwal."""
