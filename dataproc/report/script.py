"""What the page does when scripts may run: theme, sorting, a search in the samples. Without it everything can be read all the same."""

from __future__ import annotations

import base64
import hashlib

SCRIPT = """
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const compare = new Intl.Collator().compare;
  const value = (row, column) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  for (const table of document.querySelectorAll("table[data-sort]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (table.tBodies[0].rows[0]?.cells[column].querySelector(".bar")) return;
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const number = head.classList.contains("num");
        const up = head.ariaSort ? head.ariaSort !== "ascending" : !number;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.ariaSort = up ? "ascending" : "descending";
        const rows = [...table.tBodies[0].rows];
        const order = (a, b) => (number ? value(a, column) - value(b, column) : compare(value(a, column), value(b, column)));
        rows.sort((a, b) => (up ? order(a, b) : order(b, a)));
        table.tBodies[0].append(...rows);
      });
    });
  }

  const search = document.getElementById("search");
  if (!search) return;
  search.hidden = false;
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    for (const rule of document.querySelectorAll("#samples details")) {
      const named = rule.querySelector("summary").textContent.toLowerCase().includes(wanted);
      let found = 0;
      for (const doc of rule.querySelectorAll(".doc")) {
        doc.hidden = !named && !doc.textContent.toLowerCase().includes(wanted);
        found += !doc.hidden;
      }
      rule.hidden = wanted !== "" && !named && found === 0;
      if (wanted !== "") rule.open = found > 0;
    }
  });
})();
"""

# Only this very script may run: one that came in with a crawled text would have another hash.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    f"script-src 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
)
