"""Caption files: one module per format, and the processing of cues.

pysubs2, webvtt-py and pycaption are not used: they drop cues that players show, or mix notes and inner times
into the text (measured on their own test files). Here everything that is skipped is counted in a notice.
"""
