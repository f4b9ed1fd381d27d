"""Offsets: numbers in, numbers out; knows neither graph nor C."""
