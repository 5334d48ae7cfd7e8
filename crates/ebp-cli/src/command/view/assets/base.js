// What all parts of the page use: elements, colours, bytes, numbers in words, the theme.
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

// The name of the space of SVG, as the browser itself knows it: the page has no address of anything.
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;
const shape = (name, attributes = {}, text) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

const bytes = (text) => {
  const raw = atob(text || "");
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found;
};

// Whole 16-bit numbers, low byte first, whatever the machine's own order is.
const shorts = (text) => {
  const raw = bytes(text);
  const found = new Uint16Array(raw.length >> 1);
  for (let i = 0; i < found.length; i++) found[i] = raw[2 * i] | (raw[2 * i + 1] << 8);
  return found;
};

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

const inWords = (x) => {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (Number.isInteger(x) && Math.abs(x) < 1e7) return x.toLocaleString("en");
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2);
  return x.toFixed(size < 1 ? 4 : size < 100 ? 3 : 1);
};

// Maps whose lightness rises evenly, so that they can be told apart without colours: viridis (van der
// Walt and Smith, 2015), inferno by the same, cividis (Nunez and others, 2018), at equal steps.
const MAPS = {
  viridis: ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"],
  inferno: ["000004", "1b0c41", "4a0c6b", "781c6d", "a52c60", "cf4446", "ed6925", "fb9b06", "f7d13d", "fcffa4"],
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"],
};
const colourTable = (name, count = 256, from = 0, to = 1) => {
  const stops = MAPS[name].map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const table = new Uint8Array(4 * count);
  for (let i = 0; i < count; i++) {
    const place = (from + ((to - from) * i) / (count - 1)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    for (let c = 0; c < 3; c++) {
      table[4 * i + c] = Math.round(stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]));
    }
    table[4 * i + 3] = 255;
  }
  return table;
};
const asGradient = (table) => {
  const stops = [];
  for (let i = 0; i < 9; i++) {
    const at = 4 * Math.round((i * (table.length / 4 - 1)) / 8);
    stops.push(`rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`);
  }
  return `linear-gradient(90deg, ${stops.join(",")})`;
};

// The theme: the system's until the switch is used. Storage may be forbidden on file://.
const theme = {
  listeners: [],
  isDark: () => document.documentElement.dataset.theme === "dark",
  set(name, isChosen) {
    document.documentElement.dataset.theme = name;
    if (isChosen) try { localStorage.setItem("ebp-theme", name); } catch { /* the page works without */ }
    for (const tell of theme.listeners) tell();
  },
  start() {
    const system = matchMedia("(prefers-color-scheme: dark)");
    let kept = null;
    try { kept = localStorage.getItem("ebp-theme"); } catch { /* the page works without */ }
    theme.set(kept || (system.matches ? "dark" : "light"), false);
    system.addEventListener("change", () => theme.set(system.matches ? "dark" : "light", false));
  },
  turn: () => theme.set(theme.isDark() ? "light" : "dark", true),
};

// A button of a group of which one is pressed.
const parts = (names, choose) => {
  const buttons = names.map((name, index) => element("button", { type: "button", textContent: name, onclick: () => choose(index) }));
  const group = element("div", { className: "parts", role: "group" }, ...buttons);
  group.press = (index) => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === index)));
  return group;
};
