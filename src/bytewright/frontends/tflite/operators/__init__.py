"""The rows of TFLite operators, by what they do; `table.py` joins them."""
