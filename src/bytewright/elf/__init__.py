"""ELF files: what an image has (`image.py`), and which lines of C its instructions are of (`lines.py`).

pyelftools reads them. It is imported when a file is read: most runs read none.
"""
