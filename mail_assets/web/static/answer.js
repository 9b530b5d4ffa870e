"use strict";
// The answer above the results, as it arrives. Without this, the form in its place asks for a page.
(async () => {
  const place = document.querySelector("#answer[data-ask]");
  if (!place) return;
  const question = new URLSearchParams(new FormData(place.querySelector("form")));
  const text = document.createElement("p"), note = document.createElement("p");
  text.className = "answer";
  note.className = "note";
  note.textContent = "Reading the mail \u2026";
  place.replaceChildren(text, note);
  const link = (url, words) => Object.assign(document.createElement("a"), { href: url, textContent: words });
  const cite = (citations) => {
    const urls = new Map(citations.map((one) => [String(one.number), one.html_url]));
    // every other part is code, in which nothing is cited
    const parts = text.textContent.split(/(```[^]*?(?:```|$)|`[^`\n]*`)/)
      .flatMap((part, at) => (at % 2 ? [part] : part.split(/(\d+)(?=[\d, ]*\])/)));
    text.replaceChildren(...parts.map((part) => (urls.has(part) ? link(urls.get(part), part) : part)));
  };
  const show = {
    text: (data) => text.append(data.text),
    citations: (data) => cite(data.citations),
    error: (data) => { note.textContent = `No answer: ${data.error.message}.`; },
    end: (data) => {
      note.textContent = !data.complete ? `The answer is incomplete: ${data.fault}.`
        : !data.answers ? "The model found no answer in the mail, or cites none; do not rely on it."
        : "Written by a model from the mail below; it may be wrong.";
    },
  };
  try {
    const response = await fetch("/answer", { method: "POST", body: question, headers: { Accept: "text/event-stream" } });
    if (!response.ok) return show.error(await response.json());
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let held = "", part = await reader.read(); !part.done; part = await reader.read()) {
      const events = (held + part.value).split("\n\n");
      held = events.pop();
      for (const [, name, data] of events.map((event) => event.match(/^event: (\w+)\ndata: (.*)$/))) show[name]?.(JSON.parse(data));
    }
  } catch { note.textContent = "The answer could not be read."; }
})();
