// Draws a call tree as a flame graph, and lets a reader zoom, search, invert it and look at threads one by one.
// It reads the tree from the element `data` and draws into the element `graph`; without it the drawing in the file stays.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const graph = document.getElementById("graph");
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROW = 18, CHAR = 7.25, LEAST = 0.4, SIDE = 8, TOP = 44, BOTTOM = 30;

  // Shares of two profiles are compared: a node has what it weighed before as well.
  const isDiff = data.unit === "shares";
  const STEP = isDiff ? 4 : 3, WHOLE = 1e9;

  // A node: frame, own weight, weight with callees, children, parent. Of what it weighs, `was` and `wasTotal` are from before.
  // The tree comes in preorder: depth, frame, own.
  const node = (frame, parent) => ({ frame, own: 0, total: 0, was: 0, wasTotal: 0, children: [], parent });
  const add = (to, from) => ((to.own += from.own), (to.was += from.was));
  const sum = (root) => {
    const order = [root];
    for (let i = 0; i < order.length; i++) order.push(...order[i].children);
    for (const n of order) (n.total = n.own), (n.wasTotal = n.was);
    for (let i = order.length - 1; i > 0; i--) {
      const { parent, total, wasTotal } = order[i];
      (parent.total += total), (parent.wasTotal += wasTotal);
    }
    for (const n of order) n.children.sort((a, b) => (name(a) < name(b) ? -1 : 1));
    return root;
  };
  const name = (n) => (n.frame < 0 ? "all" : data.frames[n.frame][0]);
  const kind = (n) => (n.frame < 0 ? "root" : data.kinds[data.frames[n.frame][1]]);
  // What colours a box: the kind of its code or, of two profiles, how much its share changed.
  const CHANGES = ["less3", "less2", "less1", "same", "more1", "more2", "more3"];
  const shade = (n) => {
    if (!isDiff || n.frame < 0) return kind(n);
    const change = (n.total - 2 * n.wasTotal) / Math.max(n.total, 1);
    return CHANGES[Math.round(change * 3) + 3];
  };

  // The tree as the file has it: processes, in them threads, in them frames.
  const read = () => {
    const root = node(-1, null), path = [root];
    for (let i = 0; i < data.nodes.length; i += STEP) {
      const depth = data.nodes[i], parent = path[depth];
      const n = node(data.nodes[i + 1], parent);
      n.was = isDiff ? data.nodes[i + 3] : 0;
      n.own = data.nodes[i + 2] + n.was;
      parent.children.push(n);
      path[depth + 1] = n;
    }
    return sum(root);
  };

  const child = (parent, index, frame) => {
    let found = index.get(frame);
    if (!found) {
      found = node(frame, parent);
      found.index = new Map();
      parent.children.push(found);
      index.set(frame, found);
    }
    return found;
  };
  const isPlace = (n) => kind(n) === "process" || kind(n) === "thread";

  // Adds the frames below `from` to `to`, without the nodes of threads where `merge` says so.
  const merged = (tree, merge) => {
    const root = node(-1, null);
    root.index = new Map();
    const work = [[tree, root]];
    while (work.length) {
      const [from, to] = work.pop();
      add(to, from);
      for (const c of from.children) {
        const through = merge && kind(c) === "thread";
        work.push([c, through ? to : child(to, to.index, c.frame)]);
      }
    }
    return sum(root);
  };

  // Callers above their callees: roots are where time was spent.
  const inverted = (tree) => {
    const root = node(-1, null);
    root.index = new Map();
    const work = [tree];
    while (work.length) {
      const from = work.pop();
      work.push(...from.children);
      if (!from.own) continue;
      let at = root;
      for (let n = from; n.parent && !isPlace(n); n = n.parent) at = child(at, at.index, n.frame);
      add(at, from);
    }
    return sum(root);
  };

  const tree = read();
  const hasThreads = tree.children.some((process) => process.children.some((n) => kind(n) === "thread"));
  const state = { threads: true, inverted: false, zoom: null, pattern: null };
  const view = () => {
    const shown = merged(tree, !state.threads);
    return state.inverted ? inverted(shown) : shown;
  };
  let root = view();
  state.zoom = root;

  const make = (tag, attributes, text) => {
    const e = document.createElementNS(SVG, tag);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const percent = (share) => `${((100 * share) / WHOLE).toFixed(1)} %`;
  // Before and after, and by how much that is more.
  const change = (was, now) => {
    const more = (100 * (now - was)) / WHOLE;
    return `${percent(was)} → ${percent(now)} (${more < 0 ? "−" : "+"}${Math.abs(more).toFixed(1)})`;
  };
  const amount = (weight) => {
    const share = tree.total ? ((100 * weight) / tree.total).toFixed(1) : "0.0";
    if (data.unit !== "ns") return `${weight.toLocaleString("en")} ${data.unit}, ${share} %`;
    return `${(weight / 1e6).toLocaleString("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 })} ms, ${share} %`;
  };

  // The starts of the type and of the method: after the last two dots outside brackets, arguments and the source line,
  // which follows two spaces.
  const partsAt = (text) => {
    let depth = 0, at = 0, before = 0;
    for (let i = 0; i < text.length; i++) {
      const c = text[i];
      if (c === "[" || c === "<") depth++;
      else if (c === "]" || c === ">") depth = Math.max(0, depth - 1);
      else if ((c === "(" && !depth) || text.startsWith("  ", i)) break;
      else if (c === "." && !depth && i > at) (before = at), (at = i + 1);
    }
    return [before, at];
  };

  // The longest that fits: the whole name, without its module, without its namespace, without its arguments, the method, its start.
  const fit = (text, kind, width) => {
    const room = Math.floor((width - 6) / CHAR);
    if (room < 3) return "";
    const isWhole = ["native", "runtime", "kernel", "unnamed"].includes(kind);
    const starts = isWhole ? [0, 0] : partsAt(text);
    const [type, method] = starts.map((at) => text.slice(at));
    const path = text.slice(isWhole ? 0 : Math.min(text.indexOf("!") + 1, starts[0]));
    const bare = type.includes("  ") ? type : type.split("(")[0];
    const bareMethod = bare.slice(starts[1] - starts[0]);
    const fitting = [text, path, type, bare, method, bareMethod].find((name) => name.length <= room);
    return fitting || bareMethod.slice(0, room - 1) + "…";
  };

  const draw = () => {
    const width = Math.max(320, graph.clientWidth || Number(graph.getAttribute("width")) || 1200);
    const inner = width - 2 * SIDE;
    const zoom = state.zoom, above = [];
    for (let n = zoom.parent; n; n = n.parent) above.unshift(n);
    const boxes = above.map((n, depth) => [n, depth, 0, inner, true]);
    const scale = zoom.total ? inner / zoom.total : 0;
    const work = [[zoom, above.length, 0]];
    let deepest = above.length, found = null;
    while (work.length) {
      const [n, depth, x] = work.pop();
      const w = n.total * scale;
      if (w < LEAST && n !== zoom) continue;
      deepest = Math.max(deepest, depth);
      boxes.push([n, depth, x, w, false]);
      let at = x;
      for (const c of n.children) {
        work.push([c, depth + 1, at]);
        at += c.total * scale;
      }
    }
    const height = TOP + (deepest + 1) * ROW + BOTTOM;
    graph.setAttribute("viewBox", `0 0 ${width} ${height}`);
    graph.setAttribute("height", height);
    const layer = make("g", { id: "boxes" });
    for (const [n, depth, x, w, faded] of boxes) {
      const hit = state.pattern && n.frame >= 0 && state.pattern.test(name(n));
      const g = make("g", { class: `box ${shade(n)}${faded ? " faded" : ""}${hit ? " hit" : ""}`, transform: `translate(${SIDE + x} ${TOP + depth * ROW})` });
      g.append(make("rect", { width: Math.max(w - 0.5, 0.3), height: ROW - 1, rx: 1 }));
      const label = fit(name(n), kind(n), w);
      if (label) g.append(make("text", { x: 3, y: ROW - 5 }, label));
      g.node = n;
      layer.append(g);
    }
    document.getElementById("boxes").replaceWith(layer);
    if (state.pattern) found = matching(zoom);
    const says = (n) => (isDiff ? change(n.wasTotal, n.total - n.wasTotal) : amount(n.total));
    document.getElementById("found").textContent = state.pattern ? `${says(found)} match` : "";
    const put = (id, text) => (document.getElementById(id).textContent = text);
    put("invert", state.inverted ? "callers first" : "invert");
    put("threads", state.threads ? "join threads" : "by thread");
    for (const id of ["invert", "search"]) document.getElementById(id).classList.remove("off");
    document.getElementById("threads").classList.toggle("off", !hasThreads);
    document.getElementById("reset").classList.toggle("off", zoom === root);
    document.getElementById("details").setAttribute("y", height - 10);
    say(null);
  };

  // Weight of the boxes that match, each stack counted once.
  const matching = (from) => {
    const work = [from];
    const all = { total: 0, wasTotal: 0 };
    while (work.length) {
      const n = work.pop();
      if (n.frame >= 0 && state.pattern.test(name(n))) (all.total += n.total), (all.wasTotal += n.wasTotal);
      else work.push(...n.children);
    }
    return all;
  };

  const weights = (n) =>
    isDiff
      ? [change(n.wasTotal, n.total - n.wasTotal), ...(n.own ? [`itself ${change(n.was, n.own - n.was)}`] : [])]
      : [amount(n.total) + (n.own ? ` (${amount(n.own)} itself)` : "")];
  const details = (n) => [name(n), ...weights(n), ...(n.frame < 0 ? [] : data.frames[n.frame][2] || [])];
  const say = (n) => {
    const text = n ? details(n).join("  ·  ") : data.title;
    document.getElementById("details").textContent = text;
  };
  const tip = document.getElementById("tip");
  const point = (event) => {
    const box = event.target.closest && event.target.closest(".box");
    say(box ? box.node : null);
    tip.replaceChildren();
    if (!box || !box.node) return;
    const lines = details(box.node).map((line) => (line.length > 110 ? line.slice(0, 54) + "…" + line.slice(-54) : line));
    const w = Math.max(...lines.map((line) => line.length)) * CHAR + 14, h = lines.length * 16 + 10;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(graph.getScreenCTM().inverse());
    const size = graph.viewBox.baseVal;
    const x = Math.max(2, Math.min(at.x + 12, size.width - w - 2));
    const y = at.y + 16 + h > size.height ? Math.max(2, at.y - h - 8) : at.y + 16;
    const g = make("g", { transform: `translate(${x} ${y})` });
    g.append(make("rect", { width: w, height: h, rx: 4 }));
    lines.forEach((line, i) => g.append(make("text", { x: 7, y: 18 + 16 * i }, line)));
    tip.append(g);
  };

  const rebuild = () => {
    root = view();
    state.zoom = root;
    draw();
  };
  const search = () => {
    const text = prompt("Search for names (a regular expression):", state.pattern ? state.pattern.source : "");
    if (text === null) return;
    find(text);
  };
  const find = (text) => {
    try {
      state.pattern = text ? new RegExp(text, "i") : null;
    } catch {
      state.pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
    }
    draw();
  };
  const actions = {
    reset: () => ((state.zoom = root), draw()),
    search,
    invert: () => ((state.inverted = !state.inverted), rebuild()),
    threads: () => ((state.threads = !state.threads), rebuild()),
  };
  graph.addEventListener("click", (event) => {
    const action = actions[event.target.id];
    if (action) return action();
    const box = event.target.closest(".box");
    if (box && box.node) ((state.zoom = box.node), draw());
  });
  graph.addEventListener("mousemove", point);
  graph.addEventListener("mouseleave", () => (tip.replaceChildren(), say(null)));
  document.addEventListener("keydown", (event) => {
    if (event.target.tagName === "INPUT") return;
    if (event.key === "Escape") (find(""), actions.reset());
    else if (event.key === "/" || (event.key === "f" && event.ctrlKey)) (event.preventDefault(), search());
    else if (event.key === "i") actions.invert();
    else if (event.key === "t") actions.threads();
  });
  window.addEventListener("resize", draw);
  // For pages around the graph, and for tests.
  window.flame = { find, state, actions, total: () => tree.total, root: () => root, found: () => matching(state.zoom).total, draw };
  draw();
})();
