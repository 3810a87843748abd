// Clicks, zooms, searches and inverts a flame graph as a reader would, and leaves what was seen in the element `seen`.
"use strict";
(() => {
  const boxes = () => [...document.querySelectorAll("#boxes .box")];
  const click = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const data = JSON.parse(document.getElementById("data").textContent);
  const name = (box) => (box.node.frame < 0 ? "all" : data.frames[box.node.frame][0]);
  const seen = { total: flame.total(), boxes: boxes().length };

  // Each label lies inside its box.
  const fits = (box) => {
    const text = box.querySelector("text");
    return !text || text.getComputedTextLength() <= Number(box.querySelector("rect").getAttribute("width")) + 1;
  };
  seen.labels = document.querySelectorAll("#boxes text").length;
  seen.tooWide = boxes().filter((box) => !fits(box)).length;

  const target = boxes().find((box) => name(box) === "TARGET");
  seen.target = target.node.total;
  click(target);
  seen.zoomed = name(boxes().find((box) => !box.classList.contains("faded")));
  seen.above = boxes().filter((box) => box.classList.contains("faded")).length;
  document.getElementById("graph").dispatchEvent(new MouseEvent("mousemove", { bubbles: true }));
  const zoomed = boxes().find((box) => !box.classList.contains("faded"));
  zoomed.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX: 50, clientY: 50 }));
  seen.tip = [...document.querySelectorAll("#tip text")].map((line) => line.textContent);
  click(document.getElementById("reset"));
  seen.reset = boxes().length;

  flame.find("SEARCH");
  seen.found = flame.found();
  seen.hits = document.querySelectorAll("#boxes .hit").length;
  seen.says = document.getElementById("found").textContent;
  flame.find("");

  click(document.getElementById("invert"));
  seen.inverted = flame.root().total;
  const leaves = new Map();
  for (const node of flame.root().children) leaves.set(data.frames[node.frame][0], node.total);
  seen.leaves = [...leaves];
  click(document.getElementById("invert"));
  click(document.getElementById("threads"));
  seen.joined = flame.root().total;
  seen.threads = flame.root().children.flatMap((process) => process.children).filter((node) => data.kinds[data.frames[node.frame][1]] === "thread").length;

  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = "SEEN" + JSON.stringify(seen) + "NEES";
  document.documentElement.append(out);
})();
