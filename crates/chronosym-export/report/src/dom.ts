// Elements. Text is always text: nothing here reads markup.

type Attributes = Record<string, string | number | boolean | null | ((event: any) => void)>;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string | null)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name.startsWith("aria-")) element.setAttribute(name, `${value}`);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, `${value}`);
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** Fits a canvas to its element, in the pixels of the screen; returns its size in CSS pixels. */
export function fitCanvas(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Runs `draw` once before the next frame, however often it is requested. */
export function later(draw: () => void): () => void {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      draw();
    });
  };
}

/** A value of the style sheet. */
export function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const tip = el("div", { id: "tip", role: "tooltip", hidden: true });

/** Shows lines beside the pointer; nothing if absent. */
export function showTip(lines: string[] | null, x = 0, y = 0): void {
  if (!tip.isConnected) document.body.append(tip);
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((line) => el("div", {}, line)));
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(4, Math.min(x + 14, innerWidth - width - 4));
  const below = y + 18 + height <= innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? y + 18 : Math.max(4, y - height - 10)}px`;
}
