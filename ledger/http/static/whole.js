// Puts the whole of a long text where its beginning stood. Without it the link leads to a page with all of it.

export function readWhole(root) {
  root.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a.whole");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const part = link.closest("[data-part]");
    try {
      const response = await fetch(link.href, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const whole = page.querySelector(`[data-part="${part.dataset.part}"]`);
      if (!response.ok || !whole) throw new Error("not there");
      part.replaceWith(whole);
    } catch {
      location.assign(link.href);
    }
  });
}
