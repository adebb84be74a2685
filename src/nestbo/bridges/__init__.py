"""Other people's interfaces."""
