"""What the model is fed: files become samples, exactly as the chip would see them.

It refuses to know what the samples are for, and never holds more than one of them in memory.
"""
