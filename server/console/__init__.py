"""The console: pages for browsers, and the calls that they alone use."""
