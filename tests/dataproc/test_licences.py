"""Licences by the texts, notices, tags, links and names in which people state them."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.licences import GATE, find_licence, kind_of, link_licence

MIT = """Permission is hereby granted, free of charge, to any person obtaining
 * a copy of this software and associated documentation files (the "Software"), to deal"""
BSD = """# Redistribution and use in source and binary forms, with or without
# modification, are permitted provided that the following conditions are met:
# 1. Redistributions of source code must retain the above copyright notice."""
GPL = """ * This program is free software; you can redistribute it and/or modify
 * it under the terms of the GNU {}General Public License as published by
 * the Free Software Foundation; {}"""


@pytest.mark.parametrize(
    ("text", "licence", "kind", "found"),
    [
        ("# SPDX-License-Identifier: MIT\n", "MIT", "permissive", "tag"),
        ("/* SPDX-License-Identifier: GPL-2.0-only OR MIT */", "GPL-2.0-only OR MIT", "permissive", "tag"),
        ("// SPDX-License-Identifier: (GPL-2.0+ AND BSD-3-Clause)", "(GPL-2.0+ AND BSD-3-Clause)", "copyleft", "tag"),
        ("SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note", "GPL-2.0 WITH Linux-syscall-note", "copyleft", "tag"),
        ("<!-- SPDX-License-Identifier: MIT -->", "MIT", "permissive", "tag"),
        ("SPDX-License-Identifier: Foo-9.9", "Foo-9.9", "unknown", "tag"),
        (MIT, "MIT", "permissive", "text"),
        (BSD, "BSD-2-Clause", "permissive", "text"),
        (BSD + "\n# Neither the name of the author may be used", "BSD-3-Clause", "permissive", "text"),
        (BSD + "\n# All advertising materials mentioning features or use", "BSD-4-Clause", "permissive", "text"),
        ("Licensed under the Apache License, Version 2.0 (the \"License\");", "Apache-2.0", "permissive", "text"),
        (GPL.format("", "either version 2 of the License, or\n * (at your option) any later version."), "GPL-2.0-or-later", "copyleft", "text"),
        (GPL.format("", "version 2 of the License."), "GPL-2.0-only", "copyleft", "text"),
        (GPL.format("Lesser ", "either version 2.1 of the License, or (at your option) any later version."), "LGPL-2.1-or-later", "copyleft", "text"),
        (GPL.format("Affero ", "either version 3 of the License, or (at your option) any later version."), "AGPL-3.0-or-later", "copyleft", "text"),
        ("GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007", "GPL-3.0-only", "copyleft", "text"),
        ("This Source Code Form is subject to the terms of the Mozilla Public\n# License, v. 2.0.", "MPL-2.0", "copyleft", "text"),
        ("Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above", "ISC", "permissive", "text"),
        ("This is free and unencumbered software released into the public domain.", "Unlicense", "permissive", "text"),
        ("This file has been placed in the public domain.", "LicenseRef-public-domain", "permissive", "text"),
        ("see https://creativecommons.org/licenses/by-nc/4.0/", "CC-BY-NC-4.0", "noncommercial", "link"),
        ("http://creativecommons.org/licenses/by-nd-nc/1.0", "CC-BY-NC-ND-1.0", "noncommercial", "link"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0", "permissive", "link"),
        ("see https://opensource.org/licenses/MIT.", "MIT", "permissive", "link"),
        ("https://www.gnu.org/licenses/lgpl-3.0.html", "LGPL-3.0-only", "copyleft", "link"),
        ("This text is available under CC BY-SA 4.0.", "CC-BY-SA-4.0", "copyleft", "name"),
        ("Photo: CC-BY-NC-ND", "CC-BY-NC-ND", "noncommercial", "name"),
        ("under a Creative Commons Attribution-NonCommercial-ShareAlike 3.0 Unported License", "CC-BY-NC-SA-3.0", "noncommercial", "name"),
        ("Creative Commons Attribution 4.0 International", "CC-BY-4.0", "permissive", "name"),
        ("Released under the MIT License.", "MIT", "permissive", "name"),
        ("Use of this source code is governed by a BSD-style\n// license that can be found in the LICENSE file.", "LicenseRef-BSD", "permissive", "name"),
        ("distributed under the terms of the GNU General Public License, version 3 or any later version", "GPL-3.0-or-later", "copyleft", "name"),
        ("licensed under GPLv2+", "GPL-2.0-or-later", "copyleft", "name"),
        ("licensed under the terms of the GPL", "LicenseRef-GPL", "copyleft", "name"),
    ],
)  # fmt: skip
def test_what_people_write(text, licence, kind, found):
    result = find_licence(text)
    assert (result.licence, result.kind, result.found) == (licence, kind, found)
    assert re.search(GATE, text, re.IGNORECASE), "a text that the gate stops is never looked at"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "He lost his driving license under the bridge.",
        "The MIT is in Cambridge, and the Apache are a people.",
        "A licence to kill",
        "The film was released into the public domain in 1999.",
        "The GNU General Public License is widely used.",
        "SPDX-License-Identifier:\n",
        "The CC BYTE was lost, CCBY too.",
        "Лицензия 許可",
    ],
)
def test_what_states_no_licence(text):
    assert find_licence(text) is None


def test_the_stronger_statement_counts_and_equal_ones_all_do():
    assert find_licence(f"CC BY 4.0\n{MIT}\nSPDX-License-Identifier: ISC").licence == "ISC"
    both = find_licence(f"one\n{MIT}\n\n{BSD}")
    assert (both.licence, both.kind, both.line) == ("MIT AND BSD-2-Clause", "permissive", 2)
    assert (
        find_licence("SPDX-License-Identifier: MIT OR ISC\nSPDX-License-Identifier: GPL-3.0-only").licence
        == "(MIT OR ISC) AND GPL-3.0-only"
    )


def test_the_line_is_that_of_the_text_also_after_what_is_skipped():
    assert find_licence("é\n" * 9 + "CC BY 4.0").line == 10
    assert find_licence("a line\n" * 20_000 + "CC BY 4.0").line == 20_001
    assert find_licence("x" * 60_000 + "CC BY 4.0" + "\nx" * 20_000) is None


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("MIT", "permissive"),
        ("mit", "permissive"),
        ("MIT OR GPL-3.0-only AND Foo", "permissive"),
        ("(MIT OR GPL-3.0-only) AND Foo", "unknown"),
        ("(MIT AND CC-BY-NC-4.0) OR AGPL-3.0-or-later", "copyleft"),
        ("MIT AND", "unknown"),
        ("(MIT", "unknown"),
        ("MIT ISC", "unknown"),
        ("(" * 10_000 + "MIT", "unknown"),
        ("", "unknown"),
        ("CC-BY-ND-4.0", "noncommercial"),
        ("CC-BY-SA-4.0", "copyleft"),
    ],
)
def test_the_kind_of_an_expression(expression, kind):
    assert kind_of(expression) == kind


@given(st.text(st.sampled_from("()MITANDORWITH +-.Foo"), max_size=40))
def test_any_expression_has_a_kind(expression):
    assert kind_of(expression) in ("permissive", "copyleft", "noncommercial", "unknown")
    find_licence(f"SPDX-License-Identifier: {expression}")


@given(st.text())
def test_any_text_is_looked_at(text):
    find_licence(text + " license under the gnu general public license as published by the free")


def test_links():
    assert link_licence("//creativecommons.org/licenses/by-sa/3.0/deed.de") == "CC-BY-SA-3.0"
    assert link_licence("https://opensource.org/licenses/unheard-of") is None and link_licence("/licence.html") is None


@pytest.mark.parametrize(
    "piece",
    [
        "under the ",
        "SPDX-License-Identifier: MIT AND ",
        "creative commons attribution ",
        "(",
        "gnu general public license ",
        "CC BY-",
        "redistribution and use in source and binary forms with or without modification are permitted provided that ",
    ],
)
def test_hostile_texts_are_bounded(piece):
    start = time.process_time()
    find_licence(piece * (1_000_000 // len(piece)))
    assert time.process_time() - start < 5
