"""The style sheet of the page. All colours are variables; every text colour has a contrast of at least 4.5 on its ground."""

from __future__ import annotations

LIGHT = """
--ground:#f5f7f7;--card:#fff;--ink:#16202a;--muted:#55626e;--line:#dde3e6;--stripe:#f3f6f7;
--kept:#0b7285;--water:#1794a8;--dropped:#9c4806;--drop-fill:#e8902f;--quarantined:#7c3aad;--quarantine-fill:#a368d6;
--all:#b9c6cd;--refused:#e8902f1f;--accent:#0b7285;--code:#eef2f3;
"""
DARK = """
--ground:#0d1317;--card:#151d23;--ink:#e4eaee;--muted:#9aa8b3;--line:#2a353d;--stripe:#1a242b;
--kept:#4cc9dd;--water:#1b9bb0;--dropped:#f2a654;--drop-fill:#d9822b;--quarantined:#c49af0;--quarantine-fill:#9a63cf;
--all:#47555f;--refused:#d9822b2b;--accent:#4cc9dd;--code:#1d272e;
"""
BODY = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:3.2rem}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
overflow-wrap:anywhere}
main,header>div,footer{max-width:1180px;margin:0 auto;padding:0 1.25rem}
header{padding:1.6rem 0 .2rem}
h1{font-size:1.75rem;line-height:1.2;margin:.1rem 0 .4rem;letter-spacing:-.01em}
h1 small{font:500 .95rem/1.2 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--muted);margin-left:.35rem}
h2{font-size:1.15rem;margin:0 0 .2rem}
h3{font-size:.95rem;margin:1.1rem 0 .4rem}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.1rem 1.25rem 1.2rem;margin:1rem 0;min-width:0}
p{margin:.3rem 0 .8rem;max-width:75ch}
.note,.meta{color:var(--muted);font-size:.88rem;max-width:none}
.meta span{margin-right:1.1rem;display:inline-block}
.eyebrow{color:var(--accent);font-size:.78rem;font-weight:650;letter-spacing:.08em;text-transform:uppercase}
nav{position:sticky;top:0;z-index:2;background:var(--ground);border-bottom:1px solid var(--line)}
nav>div{max-width:1180px;margin:0 auto;padding:.45rem 1.25rem;display:flex;gap:1.1rem;overflow-x:auto;white-space:nowrap;align-items:center}
nav a{color:var(--muted);text-decoration:none;font-size:.88rem;padding:.25rem 0}
nav a:hover,nav a:focus-visible{color:var(--ink);text-decoration:underline;text-underline-offset:.3em}
button{font:inherit;font-size:.85rem;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:8px;
padding:.2rem .6rem;cursor:pointer}
nav button{margin-left:auto}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.8rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:.7rem .95rem;border-top:3px solid var(--line)}
.tile b{display:block;font-size:1.45rem;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums;letter-spacing:-.01em}
.tile span{font-size:.85rem;color:var(--muted)}
.tile.kept{border-top-color:var(--water)}.tile.dropped{border-top-color:var(--drop-fill)}
.tile.quarantined{border-top-color:var(--quarantine-fill)}
.equation{font-variant-numeric:tabular-nums;color:var(--muted);font-size:.95rem;margin:1.1rem 0 0}
.equation b{color:var(--ink)}
.c-kept{color:var(--kept)!important}.c-dropped{color:var(--dropped)!important}.c-quarantined{color:var(--quarantined)!important}
.box{overflow:auto;max-width:100%;border:1px solid var(--line);border-radius:8px}
.box.tall{max-height:25rem}
.river-box{overflow-x:auto;margin:.4rem 0 1rem}
svg.river{display:block}
table{border-collapse:collapse;width:100%;font-size:.9rem}
caption{text-align:left;font-weight:600;padding:.5rem .7rem;font-size:.92rem}
caption .note{font-weight:400}
th,td{padding:.32rem .7rem;text-align:left;vertical-align:top;border-top:1px solid var(--line);unicode-bidi:isolate}
thead th{color:var(--muted);font-weight:600;font-size:.8rem;background:var(--stripe);position:sticky;top:0;border-top:0;white-space:nowrap}
tbody th{font-weight:500}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.word,th.word{min-width:7rem;max-width:26rem}
tr.stage>*{background:var(--stripe);font-weight:600}
tr.rule>th{padding-left:1.7rem;font-weight:400}
tr.idle td{padding-left:1.7rem;color:var(--muted);font-size:.84rem}
th button{all:unset;cursor:pointer}
th button:focus-visible{outline:2px solid var(--accent)}
th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}
tr.idle div{max-width:min(60rem,72vw)}
#funnel-table tbody th{min-width:10rem}
.bar{display:flex;height:.72rem;min-width:7rem;margin-top:.35rem;background:transparent;border-radius:3px;overflow:hidden}
.bar i{display:block;height:100%}
.bar .kept{background:var(--water)}.bar .dropped{background:var(--drop-fill)}.bar .quarantined{background:var(--quarantine-fill)}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(21rem,100%),1fr));gap:1rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr));gap:1rem;align-items:start}
.pair>*{min-width:0}
figure{margin:0;border:1px solid var(--line);border-radius:8px;padding:.6rem .7rem .5rem;min-width:0}
figcaption{font:600 .88rem ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
figure .note{margin:.2rem 0 0;font-size:.8rem;font-variant-numeric:tabular-nums}
table.mini{margin-top:.2rem;table-layout:fixed}table.mini tr>:first-child{width:2.3rem;white-space:nowrap}
table.mini th,table.mini td{padding:.1rem .15rem;border:0;background:none;position:static;
color:var(--muted);font-size:.78rem;font-weight:400}table.mini td{color:var(--ink)}
svg.plot{display:block;width:100%;height:auto}
svg text{fill:var(--muted);font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
svg .name{fill:var(--ink);font-weight:600;font-size:12px}
svg .small{font-size:12px;font-variant-numeric:tabular-nums}
svg .limit-name{fill:var(--dropped);font-size:10.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px}
svg .limit{stroke:var(--dropped);stroke-width:1.2;stroke-dasharray:4 2}
svg .axis{stroke:var(--muted);stroke-width:1}
svg .bars.all{fill:var(--all)}svg .bars.kept{fill:var(--water);fill-opacity:.85}
svg .cut{stroke:var(--card);stroke-width:4}
svg .refused{fill:var(--refused)}
svg .water{fill:var(--water)}
svg .fall{fill-opacity:.75}svg .fall.dropped{fill:var(--drop-fill)}svg .fall.quarantined{fill:var(--quarantine-fill)}
svg .gate{stroke:var(--card);stroke-width:1.5}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 .9em;vertical-align:-.05em}
.key:first-child{margin-left:0}
.key.all{background:var(--all)}.key.kept{background:var(--water)}.key.dropped{background:var(--drop-fill)}
.key.quarantined{background:var(--quarantine-fill)}
details{border-top:1px solid var(--line)}
details:last-of-type{border-bottom:1px solid var(--line)}
summary{cursor:pointer;padding:.5rem .1rem;font-weight:550}
summary .note{font-weight:400;margin-left:.4rem}
.doc{border-left:3px solid var(--line);padding:.1rem 0 .1rem .8rem;margin:.7rem 0 1rem .2rem}
.doc blockquote{margin:.3rem 0 0;white-space:pre-wrap;unicode-bidi:plaintext}
.doc .note{font-size:.8rem}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em}
pre{background:var(--code);border-radius:8px;padding:.7rem .9rem;overflow-x:auto;margin:.4rem 0;overflow-wrap:normal}
code{background:var(--code);border-radius:4px;padding:.08em .3em}
pre code{padding:0;background:none}
footer{color:var(--muted);font-size:.85rem;padding-top:.4rem;padding-bottom:2.5rem}
input[type=search]{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.3rem .6rem;
width:min(22rem,100%);margin:.2rem 0 .7rem}
[hidden]{display:none!important}
@media (max-width:600px){main,header>div,nav>div,footer{padding-left:.8rem;padding-right:.8rem}
section{padding:.9rem .8rem 1rem;border-radius:10px}h1{font-size:1.4rem}.tile b{font-size:1.2rem}
.tiles{grid-template-columns:repeat(2,1fr);gap:.6rem}th,td{padding:.3rem .5rem}h1 small{margin-left:0;display:block}
#funnel-table tbody th{position:sticky;left:0;min-width:8.6rem;max-width:8.6rem;z-index:1}#funnel-table tr.rule>th{background:var(--card);
padding-left:.9rem}}
@media print{nav,button,input{display:none!important}section{break-inside:avoid;border:0}.box.tall{max-height:none}}
"""

STYLE = (
    f":root{{color-scheme:light;{LIGHT}}}"
    f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{DARK}}}}}"
    f":root[data-theme=dark]{{color-scheme:dark;{DARK}}}{BODY}"
)
