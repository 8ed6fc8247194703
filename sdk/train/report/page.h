// Style and script of the report: one file, no network, light and dark, from a telephone's width up.
#ifndef INLAID_SDK_TRAIN_REPORT_PAGE_H_
#define INLAID_SDK_TRAIN_REPORT_PAGE_H_

namespace inlaid::train {

inline constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--paper:#fcfcfb;--card:#fff;--ink:#1d2329;--soft:#5d6872;--rule:#dfe3e6;--c0:#1f6feb;--c1:#c2571a;
--c2:#2b8a3e;
--c3:#8250df;--c4:#b58900;--c5:#d33682}
@media(prefers-color-scheme:dark){:root{--paper:#14181c;--card:#1b2026;--ink:#e6eaed;--soft:#9aa5ae;--rule:#323a42;--c0:#6cb0ff;
--c1:#ff9e64;
--c2:#7ccf8a;--c3:#c3a6ff;--c4:#e3c35f;--c5:#f58ac0}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;
overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:.5rem 0 0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{margin:.2rem 0;color:var(--soft)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.6rem;margin:1rem 0}
.card{background:var(--card);border:1px solid var(--rule);border-radius:.5rem;padding:.6rem .8rem}
.card b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}.card span{color:var(--soft);font-size:.85rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:.8rem}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:.5rem;padding:.6rem}
figcaption{font-size:.9rem;min-height:1.5em}figcaption output{float:right;color:var(--soft);font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:auto;touch-action:pan-y}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.grid{stroke:var(--rule);stroke-width:1}.line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round}
.band{fill:currentColor;opacity:.15}.dot{fill:currentColor}.cursor{stroke:var(--soft);stroke-width:1}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}.c5{color:var(--c5)}
.key{margin-left:.6em;white-space:nowrap}
.key::before{content:"";display:inline-block;width:.9em;height:.2em;margin-right:.3em;background:currentColor;
vertical-align:middle}
.samples{display:grid;gap:.8rem}.sample{background:var(--card);border:1px solid var(--rule);border-radius:.5rem;padding:.6rem .8rem}
.sample>b{white-space:pre-wrap}.answers{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr));gap:.8rem}
.answers span{color:var(--soft);font-size:.85rem}.answers div div{white-space:pre-wrap}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--rule);
vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}
pre{background:var(--card);border:1px solid var(--rule);border-radius:.5rem;padding:.6rem;overflow-x:auto;font-size:.85rem;
white-space:pre-wrap}
summary{cursor:pointer;color:var(--soft);margin:.4rem 0}
)css";

// Shows the values nearest to the pointer; the page is complete without it.
inline constexpr char kScript[] = R"js(
for (const svg of document.querySelectorAll('svg[data-lines]')) {
  const lines = JSON.parse(svg.dataset.lines), low = +svg.dataset.low, high = +svg.dataset.high;
  const out = svg.parentNode.querySelector('output'), cursor = svg.querySelector('.cursor');
  const show = event => {
    const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * 400;
    const step = low + (at - 46) / 346 * (high - low);
    let best = null;
    const texts = lines.map(line => {
      let near = 0;
      line.steps.forEach((s, i) => { if (Math.abs(s - step) < Math.abs(line.steps[near] - step)) near = i; });
      if (best === null || Math.abs(line.steps[near] - step) < Math.abs(best - step)) best = line.steps[near];
      return line.values[near] + svg.dataset.unit;
    });
    const x = 46 + (best - low) / (high - low) * 346;
    cursor.setAttribute('x1', x); cursor.setAttribute('x2', x);
    out.textContent = 'step ' + best + ': ' + texts.join(' · ');
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerdown', show);
  svg.addEventListener('pointerleave', () => { out.textContent = ''; cursor.setAttribute('x1', -9); cursor.setAttribute('x2', -9); });
}
)js";

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_REPORT_PAGE_H_
