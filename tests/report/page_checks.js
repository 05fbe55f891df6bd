// What a reader would stumble over on the page as it is drawn now.
// Texts are clipped by what hides them: a scrolled region, a drawing's border.
const area = ({ left, top, right, bottom }) => Math.max(right - left, 0) * Math.max(bottom - top, 0);
const cut = (a, b) => ({
  left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
  right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
});
const clips = (node) => {
  const boxes = [];
  for (let each = node.parentElement; each; each = each.parentElement) {
    if (each !== document.body && getComputedStyle(each).overflow !== "visible") boxes.push(each.getBoundingClientRect());
  }
  return boxes;
};
const texts = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  const holder = node.parentElement;
  if (!node.data.trim() || holder.closest("script, style, title, select, noscript, .skip")) continue;
  if (!holder.checkVisibility()) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const rect of range.getClientRects()) {
    const seen = clips(node).reduce(cut, rect);
    if (area(seen) > 1) texts.push({ node, holder, rect: seen, text: node.data.trim() });
  }
}

texts.sort((a, b) => a.rect.top - b.rect.top);
const overlaps = [];
texts.forEach((a, index) => {
  for (let next = index + 1; next < texts.length && texts[next].rect.top < a.rect.bottom; next++) {
    const b = texts[next];
    const both = cut(a.rect, b.rect);
    if (a.node !== b.node && both.right - both.left > 1 && both.bottom - both.top > 3) overlaps.push([a.text, b.text]);
  }
});

// WCAG 2.1: relative luminance and contrast ratio
const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
const luminance = (color) => channels(color).slice(0, 3)
  .map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4))
  .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
const isOpaque = (color) => color.startsWith("rgb") && (channels(color)[3] ?? 1) > 0.5;
const behind = (holder) => {
  const box = holder.closest(".box, .builds g")?.querySelector("rect") ?? holder.closest(".builds")?.querySelector("rect");
  if (box) return getComputedStyle(box).fill;
  for (let each = holder; each; each = each.parentElement) {
    const color = getComputedStyle(each).backgroundColor;
    if (isOpaque(color)) return color;
  }
  return "rgb(255, 255, 255)";
};
const faint = texts.flatMap(({ holder, text }) => {
  const style = getComputedStyle(holder);
  const [x, y] = [holder instanceof SVGElement ? style.fill : style.color, behind(holder)].map(luminance);
  const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  return ratio < 4.5 ? [[text, Number(ratio.toFixed(2))]] : [];
});

const dead = [...document.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href"))
  .filter((href) => !href.includes("=") && !document.getElementById(href.slice(1)));
const background = getComputedStyle(document.body).backgroundColor;
return { texts: texts.length, overlaps, faint, dead, background,
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth, width: innerWidth };
