"""IBANs: country, two check digits (ISO 7064 mod 97-10) and the length that the country gives them (SWIFT registry)."""

from __future__ import annotations

import re

from dataproc.pii.reading import Find

LENGTHS = {
    code: int(size)
    for code, size in (
        item.split(":")
        for item in (
            "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DJ:27 DK:18 DO:28 EE:20 "
            "EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HN:28 HR:21 HU:28 IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 "
            "KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 "
            "PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 "
            "UA:29 VA:22 VG:24 XK:20 YE:30"
        ).split()
    )
}
_SEPARATED = re.compile(rb"[A-Za-z]{2}[0-9]{2}(?:(?: |-|\xc2\xa0)?[A-Za-z0-9]){11,29}")
_BETWEEN = re.compile(rb" |-|\xc2\xa0")


def iban_at(raw: bytes, start: int) -> Find | None:
    """The IBAN that begins at a byte, in one word or in groups; what follows it may be a word, but no letter or digit that touches it."""
    size = LENGTHS.get(raw[start : start + 2].decode("ascii", "replace").upper())
    found = _SEPARATED.match(raw, start, min(len(raw), start + 80)) if size else None
    if not found:
        return None
    end, count = start, 0
    while end < found.end() and count < size:
        gap = _BETWEEN.match(raw, end)
        end = gap.end() if gap else end
        end += 1
        count += 1
    compact = _BETWEEN.sub(b"", raw[start:end]).decode()
    if count < size or raw[end : end + 1].isalnum() or not (compact.isupper() or compact.islower()):
        return None
    moved = compact.upper()[4:] + compact.upper()[:4]
    return Find("iban", start, end) if int("".join(str(int(c, 36)) for c in moved)) % 97 == 1 else None
