"""Samples: files converted to the model's feeds, exactly as the chip sees them.

This room does not know what the samples are for. It holds one sample in memory at a time.
"""
