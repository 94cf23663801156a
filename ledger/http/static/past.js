// Turns the list of a goal's past moments into a slider. Without it the list stays, with its button.

import { clock } from "./times.js";

export function slidePast(root) {
  const form = root.querySelector("form.past");
  const select = form?.querySelector("select");
  if (!select) return;
  const moments = [...select.options].map((option) => ({ cursor: option.value, at: option.dataset.at, kind: option.text }));
  const chosen = select.selectedIndex;
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: 0, max: moments.length - 1, id: select.id });
  slider.setAttribute("value", chosen);
  const output = document.createElement("output");
  const tell = () => {
    const { at, kind } = moments[slider.value];
    const last = Number(slider.value) === moments.length - 1;
    output.textContent = last ? "now" : `${clock(new Date(at), new Date())}, ${kind.split(", ").at(-1)}`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", tell);
  slider.addEventListener("change", () => {
    const last = Number(slider.value) === moments.length - 1;
    location.assign(last ? form.action : `${form.action}?at=${encodeURIComponent(moments[slider.value].cursor)}`);
  });
  select.replaceWith(slider);
  form.querySelector("button").replaceWith(output);
  tell();
}
