"""The files of Whisper base, which Conspectus reads to transcribe recordings."""
