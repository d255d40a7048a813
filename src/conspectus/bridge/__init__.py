"""The bridge between blocking and asynchronous code: programs with and without an event loop use one engine.

Imports bootstrap and engine.

An engine runs on one event loop. The bridge owns that loop (it opens the engine in a thread), borrows it (the
loop of a blocking engine) or joins it (the loop of the program that opened an asynchronous engine).
"""
