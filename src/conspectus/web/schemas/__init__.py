"""What requests hold and what answers hold, with their bounds."""
