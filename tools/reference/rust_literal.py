"""Numbers as Rust writes them: digits in groups of three."""


def rust(value):
    """The shortest literal that reads back as `value`."""
    sign, text = ("-", repr(-float(value))) if value < 0 else ("", repr(float(value)))
    mantissa, _, exponent = text.partition("e")
    whole, _, digits = mantissa.partition(".")
    whole = f"{int(whole):_}" if len(whole) > 4 else whole
    if len(digits) > 4:
        digits = "_".join(digits[i : i + 3] for i in range(0, len(digits), 3))
    return f"{sign}{whole}.{digits}" + (f"e{exponent}" if exponent else "")
