"""edgefirst: the form of EdgeFirst's Ara2 Converter."""
