"""The rules: what an event is, how a log is chained, what a crash left open and what closes it.

Everything here is a function from values to values. No file, clock, random source or network is reached from this
package; whoever needs one hands it in.
"""
