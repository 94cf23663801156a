// Tells the times of a page in the reader's own zone, and counts ages on. Without it they stand in UTC, as of loading.

const UNITS = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
const MONTH = new Intl.DateTimeFormat("en", { month: "short" });

export function tellTimes(root, now = new Date()) {
  for (const element of root.querySelectorAll("time[data-show]")) {
    const when = new Date(element.dateTime);
    const text = element.dataset.show === "age" ? age(when, now) : clock(when, now, element.dataset.show === "seconds");
    if (element.textContent !== text) element.textContent = text;
  }
}

function age(when, now) {
  const seconds = Math.max(0, Math.floor((now - when) / 1000));
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? UNITS.at(-1);
  return `${Math.floor(seconds / length)} ${unit}`;
}

export function clock(when, now, seconds = false) {
  const two = (number) => String(number).padStart(2, "0");
  const time = [when.getHours(), when.getMinutes(), ...(seconds ? [when.getSeconds()] : [])].map(two).join(":");
  if (when.toDateString() === now.toDateString()) return time;
  const year = when.getFullYear() === now.getFullYear() ? "" : ` ${when.getFullYear()}`;
  return `${when.getDate()} ${MONTH.format(when)}${year} ${time}`;
}
