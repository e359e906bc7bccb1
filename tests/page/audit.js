// Returns what is wrong with the screen as it is: text wider than the screen, controls without a name, too little contrast,
// and states without a sign and a word.
const wrong = [];
const shown = (node) => node.getClientRects().length > 0 && getComputedStyle(node).visibility === "visible";
const named = (node) => (node.getAttribute("aria-label") || node.textContent || node.labels?.[0]?.textContent || node.getAttribute("title") || "").trim();

if (document.documentElement.scrollWidth > innerWidth) {
  const wide = [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest(".scroll, .skip"));
  wrong.push(`wider than the screen: ${wide.slice(0, 3).map((node) => node.outerHTML.slice(0, 120)).join(" | ")}`);
}
for (const node of document.querySelectorAll("a[href], button, input, textarea, select, [role=listbox], [role=option]")) {
  if (shown(node) && !named(node)) wrong.push(`no name: ${node.outerHTML.slice(0, 120)}`);
}
if (!document.querySelector("main") || !document.querySelector("h1, main h2")) wrong.push("no landmark or heading");
for (const node of document.querySelectorAll(".state")) {
  if (shown(node) && !/^\S+ \S+/u.test(node.innerText.replaceAll("\n", " "))) wrong.push(`no sign and word: ${node.outerHTML.slice(0, 120)}`);
}

const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
const luminance = (colour) => {
  const [r, g, b] = channels(colour).map((value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if ((channels(colour)[3] ?? 1) === 1) return colour;
  }
  return "rgb(255, 255, 255)";
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !shown(node) || node.closest("svg, :disabled, .skip")) continue;
  const [front, back] = [luminance(getComputedStyle(node).color), luminance(ground(node))];
  const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)}: ${walker.currentNode.data.slice(0, 60)}`);
}
return [...new Set(wrong)];
