"""Files of captions: one module for each format, and the processing of cues.

Own code, because pysubs2, webvtt-py and pycaption drop cues that players show, or mix notes and inner times
into the text (measured on the parsers' own test files); here everything that is left out is counted in a
notice.
"""
