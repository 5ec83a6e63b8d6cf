"""The number that a simulated camera paints into each frame: 44 cells in the corner, white or black. The layout is
described in weir/camsim/stamp.hpp."""


def number_of(cells):
    """`cells`: whether each of the 44 is white, in reading order. None where that is no stamp."""
    bits = 0
    for white in cells:
        bits = bits << 1 | int(white)
    check = 0xA5
    for byte in (bits >> 8).to_bytes(5, "big"):
        check ^= byte
        for _ in range(8):
            check = (check << 1 ^ 0x07 if check & 0x80 else check << 1) & 0xFF
    return bits >> 28 if check == bits & 0xFF else None
