"""Recordings: their speech as captions, by Whisper in a child process."""
