// The search box, and the names of the table that lead into the graph.
"use strict";
(() => {
  const box = document.getElementById("find");
  const search = (text) => {
    box.value = text;
    window.flame.find(text);
  };
  box.addEventListener("input", () => window.flame.find(box.value));
  for (const cell of document.querySelectorAll("td.name[data-find]")) {
    cell.style.cursor = "pointer";
    cell.addEventListener("click", () => {
      search(cell.dataset.find.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      window.scrollTo({ top: 0 });
    });
  }
})();
