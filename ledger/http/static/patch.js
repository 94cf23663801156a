// Makes one element like another and touches only what differs: what is hovered, selected, focused or unfolded stays.

const TABLES = new Set(["OL", "UL", "TBODY"]);

// `old` becomes like `fresh`, which is taken apart. Elements with an id are known again wherever they stand.
export function patch(old, fresh) {
  takeAttributes(old, fresh);
  const known = new Map();
  for (const child of old.children) if (child.id) known.set(child.id, child);
  const coming = new Set([...fresh.children].map((child) => child.id).filter(Boolean));
  let place = old.firstChild;
  const skip = () => {
    while (place?.id && !coming.has(place.id)) place = remove(place);
  };
  for (const child of [...fresh.childNodes]) {
    skip();
    const match = child.id ? known.get(child.id) : place && !place.id && alike(place, child) ? place : null;
    if (!match || !alike(match, child)) {
      if (child.id && TABLES.has(old.tagName)) child.classList.add("fresh");
      old.insertBefore(child, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    if (match.nodeType !== Node.ELEMENT_NODE) {
      if (match.data !== child.data) match.data = child.data;
    } else if (!match.isEqualNode(child) && !held(match)) patch(match, child);
  }
  while (place) place = remove(place);
}

function remove(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

function takeAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    // whether it is unfolded is up to the reader
    if (!(name === "open" && old.tagName === "DETAILS") && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.tagName === "DETAILS")) old.removeAttribute(name);
  }
}

// A form is not taken from under somebody who is filling it in.
function held(element) {
  if (!element.hasAttribute("data-hold")) return false;
  return element.contains(document.activeElement) || [...element.querySelectorAll("input, textarea")].some(changed);
}

function changed(input) {
  return input.value !== input.defaultValue;
}
