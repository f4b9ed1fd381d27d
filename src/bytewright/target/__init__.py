"""What the hardware is: devices, memories, pools, and the files that describe them."""
