"""Numbers as a reader wants them."""

from __future__ import annotations

THIN = "\u202f"  # narrow no-break space between groups of three digits
UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def whole(number: int) -> str:
    """1234567 -> 1 234 567."""
    return f"{number:,}".replace(",", THIN)


def share(part: int | float, whole_: int | float) -> str:
    """A part in per cent with three leading digits; nothing is shown as 0% that is not 0, nor as 100% that is not all."""
    if not whole_:
        return "–"
    percent = 100 * part / whole_
    if part == 0 or part == whole_:
        return f"{percent:.0f}%"
    if percent < 0.01:
        return "<0.01%"
    text = f"{percent:.2f}" if percent < 9.995 else f"{percent:.1f}"
    return ">99.9%" if text == "100.0" else f"{text}%"


def size(number: int | float) -> str:
    """Bytes in powers of 1000 with three leading digits."""
    value, unit = float(number), 0
    while value >= 999.5 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 0 if unit == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f}{THIN}{UNITS[unit]}"


def number(value: float | str | None, digits: int = 4) -> str:
    """A signal's value with `digits` significant digits; whole numbers in full up to a billion."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < 1e9:
        return whole(int(value))
    if 1e-4 <= abs(value) < 1000:
        return f"{value:.{digits}g}" if float(f"{value:.{digits}g}") < 1000 else f"{value:.0f}"
    if abs(value) < 1e9 and abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", THIN)
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def compact(value: float) -> str:
    """A number where there is little room, with three significant digits: 20k, 1.5M, 0.123; below 10 000 whole numbers in full."""
    for limit, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if limit <= abs(value) < 1e12:
            return f"{number(float(f'{value / unit:.3g}'))}{letter}"
    return number(value, 3)


def seconds(value: float) -> str:
    """A duration: 0.42 s, 12.3 s, 4 min 05 s, 3 h 20 min."""
    if value < 9.995:
        return f"{value:.2f}{THIN}s"
    if value < 99.95:
        return f"{value:.1f}{THIN}s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{whole(hours)}{THIN}h {minutes_left:02d}{THIN}min"
    return f"{minutes}{THIN}min {rest:02d}{THIN}s"
