"""edgefirst: the form of the Ara2 Converter."""
