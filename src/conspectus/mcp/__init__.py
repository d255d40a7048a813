"""What models connect by: a server of the Model Context Protocol over any engine."""
