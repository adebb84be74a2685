"use strict";
// The table sorts by the heading that was clicked; empty cells stay last. The order survives a reload.
const kept = (key, value) => {
  try {
    if (value === undefined) return JSON.parse(sessionStorage.getItem(key));
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch { /* a page without storage forgets */ }
  return null;
};
const keyOf = (row, column) => row.cells[column].dataset.key ?? row.cells[column].textContent.trim();
const compare = (a, b) => {
  if (a === "" || b === "") return 0;
  return isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
};
const sort = (table, column, descending) => {
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, other) => {
    const a = keyOf(one, column), b = keyOf(other, column);
    if ((a === "") !== (b === "")) return a === "" ? 1 : -1;
    return descending ? compare(b, a) : compare(a, b);
  });
  table.tBodies[0].append(...rows);
  [...table.tHead.rows[0].cells].forEach((cell, k) =>
    k === column ? cell.setAttribute("aria-sort", descending ? "descending" : "ascending") : cell.removeAttribute("aria-sort"));
};
for (const table of document.querySelectorAll("table.sortable")) {
  const place = "order:" + location.pathname, cells = [...table.tHead.rows[0].cells];
  cells.forEach((cell, column) => cell.addEventListener("click", () => {
    const descending = cell.getAttribute("aria-sort") === "ascending";
    sort(table, column, descending);
    kept(place, [column, descending]);
  }));
  const last = kept(place);
  if (last) sort(table, ...last);
}
// A page that is served asks for news, and loads itself again when there are some.
const sign = document.getElementById("live");
if (sign) {
  const ask = async () => {
    try {
      const answer = await fetch("state", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      if (await answer.text() !== sign.dataset.state) return location.reload();
      sign.textContent = "live";
      sign.classList.remove("lost");
    } catch {
      sign.textContent = "not connected";
      sign.classList.add("lost");
    }
    setTimeout(ask, 2000);
  };
  ask();
}
