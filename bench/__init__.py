"""The benchmarks of turnwal: ratios, measured on one machine in one run."""
