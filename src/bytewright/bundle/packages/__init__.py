"""Files that build systems want beside the C of a bundle: a file of this folder for each, and a README for all."""
