"""EdgeFirst's chips, and the form of its Ara2 Converter."""
