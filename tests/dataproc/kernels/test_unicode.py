"""The tables say of every code point what Python says."""

from __future__ import annotations

import sys

from dataproc.kernels import unicode as u


def test_every_code_point():
    stage, classes, scripts, shifts = u.tables()
    for code in range(sys.maxunicode + 1):
        character, place = chr(code), (int(stage[code >> 8]) << 8) | (code & 255)
        assert classes[place] == u.code_class(character), hex(code)
        assert scripts[place] == u.code_script(character), hex(code)
        assert code + shifts[place] == ord(u.simple_lower(character)), hex(code)


def test_known_characters():
    assert u.code_class("漢") & u.UNSPACED and u.code_class("か") & u.UNSPACED and u.code_class("ส") & u.UNSPACED
    assert not u.code_class("カ") & u.UNSPACED and not u.code_class("한") & u.UNSPACED and not u.code_class("é") & u.UNSPACED
    assert list(u.SCRIPTS)[u.code_script("ж")] == "cyrillic" and list(u.SCRIPTS)[u.code_script("々")] == "han"
    assert u.code_class("\u3000") & u.SPACE and u.code_class("।") & u.TERMINAL and u.code_class("\ue000") & u.PLAIN
