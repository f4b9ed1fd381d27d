"""Command streams of Arm's Ethos-U55 and Ethos-U65, as the Vela compiler writes them: read, proved and carried out.

Pure functions of bytes: `parse_payload` opens what the custom operator carries, `decode` turns registers into typed
operations, `accesses` says which bytes of which region each of them reads and writes, and `execute` carries a stream
out on arrays, exactly. What is not understood is refused, never guessed. Only the weight stream's entropy code is left
to Vela's own decoder, an optional package.
"""
