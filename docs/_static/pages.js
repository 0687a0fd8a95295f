// Names columns for phones (see pages.css), breaks long names between their words, and folds the
// arguments that matter less.
const WIDE = 4; // columns from which a row becomes a block on a phone
const OPEN = 6; // arguments shown of a function with many
const LINE = 36; // letters of code that fit into a line on a phone; names up to it stay whole in texts
const BREAKS = /(?<=[\/_(=,:])|(?<=\.)(?!py)|(?<=[a-z])(?=[A-Z])/; // as in core/policies/, DataAllocationSampler(

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    if (names.length < WIDE) continue;
    table.classList.add("wide-table");
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, place) => {
        if (names[place]) cell.dataset.column = names[place];
      });
    }
  }
  for (const word of document.querySelectorAll("article code .pre")) {
    if (word.children.length || word.textContent.length < (word.closest("td, h2") ? 12 : LINE)) continue;
    const parts = word.textContent.split(BREAKS);
    word.replaceChildren(...parts.flatMap((part, place) => place ? [document.createElement("wbr"), part] : [part]));
  }
  for (const list of document.querySelectorAll("dl.py dl.field-list > dd:first-of-type > ul.simple")) {
    const rest = [...list.children].slice(OPEN);
    if (rest.length < 2) continue;
    const details = document.createElement("details");
    details.className = "arguments";
    const summary = document.createElement("summary");
    summary.textContent = `${rest.length} more arguments`;
    const more = document.createElement("ul");
    more.className = "simple";
    more.append(...rest);
    details.append(summary, more);
    list.after(details);
    const isLinked = () => details.querySelector(":target") && (details.open = true);
    isLinked();
    window.addEventListener("hashchange", isLinked);
  }
});
