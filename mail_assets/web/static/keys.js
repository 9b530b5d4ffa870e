"use strict";
// Keys j, k and / move through a page; fixed-width letters and the keys are remembered as chosen.
(() => {
  const kept = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch { /* a browser may refuse to store anything */ }
    return null;
  };
  const mono = document.querySelector("#mono");
  if (mono) {
    mono.checked = kept("mono") === "on";
    mono.addEventListener("change", () => kept("mono", mono.checked ? "on" : "off"));
  }
  const label = document.querySelector("#keys"), keys = label.querySelector("input");
  label.hidden = false;
  keys.checked = kept("keys") !== "off";
  keys.addEventListener("change", () => kept("keys", keys.checked ? "on" : "off"));
  const stops = [...document.querySelectorAll(".post, .hits > li, .threads > li, .newest > li, .answers > li")];
  const move = (way) => {
    const seen = stops.filter((one) => one.getClientRects().length);
    const held = seen.findIndex((one) => one.contains(document.activeElement));
    const top = seen.findIndex((one) => one.getBoundingClientRect().bottom > 1);
    const at = held >= 0 ? held + way : way > 0 ? Math.max(top, 0) : top - 1;
    const next = seen[at];
    if (!next) return;
    (next.querySelector("summary, a") || next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "start" });
  };
  const does = { j: () => move(1), k: () => move(-1), "/": () => document.querySelector('input[name="q"]')?.focus() };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");
    if (!keys.checked || typing || event.ctrlKey || event.metaKey || event.altKey || !does[event.key]) return;
    event.preventDefault();
    does[event.key]();
  });
})();
