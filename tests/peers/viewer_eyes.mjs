// Accessibility checks of contrast and names, for viewer.mjs. The functions run on the page.

/** Texts with less contrast than WCAG's AA requires (2.2, 1.4.3). */
export function lowContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const over = (top, under) => [0, 1, 2].map((at) => top[at] * (top[3] / 255) + under[at] * (1 - top[3] / 255));
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    if (!element) return [255, 255, 255];
    const own = read(getComputedStyle(element).backgroundColor);
    return own[3] === 255 ? Array.from(own) : over(Array.from(own), background(element.parentElement));
  };
  const found = new Set();
  const walk = document.createTreeWalker(document.querySelector("dialog[open]") ?? document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const under = background(element);
    const style = getComputedStyle(element);
    const [a, b] = [luminance(over(Array.from(read(style.color)), under)), luminance(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) found.add(`${ratio.toFixed(2)}: ${element.tagName}.${element.className || element.id} of ${element.parentElement.className || element.parentElement.id}`);
  }
  return [...found];
}

/** Controls without a name, and references to missing elements. */
export function unnamed() {
  const all = [...document.querySelectorAll("button, input, select, canvas, summary, [role=option], [role=listbox], [role=slider], [role=tab], dialog")];
  const nameless = all.filter((one) => one.checkVisibility() && one.matches(":not(dialog)"))
    .filter((one) => !(one.ariaLabel || one.title || one.textContent.trim() || document.getElementById(one.getAttribute("aria-labelledby"))));
  const named = [...document.querySelectorAll("[aria-controls], [aria-activedescendant]")]
    .filter((one) => ["aria-controls", "aria-activedescendant"].some((name) => one.hasAttribute(name) && !document.getElementById(one.getAttribute(name))));
  return [...nameless.map((one) => `no name: ${one.outerHTML.slice(0, 80)}`), ...named.map((one) => `refers to a missing element: ${one.outerHTML.slice(0, 120)}`)];
}
