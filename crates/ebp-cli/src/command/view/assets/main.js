// Puts the page together from its data, and keeps it up to date where a server stands behind it.
const data = JSON.parse(document.getElementById("data").textContent);
const rooms = [];
let shown = 0;

const addRoom = (name, make) => {
  const room = element("section", { className: "room", hidden: true });
  document.getElementById("main").append(room);
  const tab = element("button", { type: "button", textContent: name, onclick: () => show(rooms.indexOf(entry)) });
  tab.setAttribute("role", "tab");
  document.getElementById("rooms").append(tab);
  const entry = { name, room, tab, made: null, make };
  rooms.push(entry);
  return entry;
};

// A room is made when it is first seen, so that the page opens at once.
const make = (entry) => {
  if (entry.made) return entry.made;
  try {
    entry.made = entry.make(entry.room) || {};
  } catch (error) {
    entry.made = {};
    entry.room.replaceChildren(element("p", { className: "empty", textContent: `This part cannot be shown: ${error.message}` }));
  }
  return entry.made;
};

const show = (index) => {
  shown = index;
  rooms.forEach(({ room, tab }, i) => {
    room.hidden = i !== index;
    tab.setAttribute("aria-selected", String(i === index));
  });
  make(rooms[index]);
};

const keys = (event) => {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return;
  const isTyped = target.tagName === "SELECT" || (target.tagName === "INPUT" && (target.type !== "range" || event.key.startsWith("Arrow")));
  if (isTyped || (event.key === " " && target.tagName === "BUTTON")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const { made } = rooms[shown];
  let isDone = true;
  if (key === "?") document.getElementById("keys").showModal();
  else if (key === "t") theme.turn();
  else if (key === "]" || key === "[") show((shown + (key === "]" ? 1 : rooms.length - 1)) % rooms.length);
  else if (made instanceof CloudRoom) isDone = cloudKeys(made, key);
  else if (made instanceof DensityRoom) isDone = made.key(key);
  else isDone = false;
  if (isDone) event.preventDefault();
};

// What the server says since `from`: whole lines of the record, and the pictures there are.
const follow = (training, pictures) => {
  const pulse = document.getElementById("pulse");
  pulse.hidden = false;
  let [from, mark, wait, seen] = [0, "", 0, ""];
  const ask = async () => {
    try {
      const answer = await fetch(`/metrics.json?from=${from}&mark=${mark}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      const news = await answer.json();
      if (news.again) training.clear();
      for (const line of news.lines) {
        const { step, ...numbers } = line;
        if (line.rollback) {
          training.forgetFrom(step);
          training.take({}, [step]);
        } else {
          if (step <= training.lastStep) training.forgetFrom(step);
          training.take(Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, [[step], [value]]])), []);
        }
      }
      if (news.lines.length || news.again) training.draw();
      [from, mark, wait] = [news.next, news.mark, 0];
      const names = JSON.stringify(news.pictures);
      if (names !== seen) {
        seen = names;
        pictures.put(news.pictures.map(({ name, stamp, width }) => ({ name, width, source: `/picture/${encodeURIComponent(name)}?at=${stamp}` })));
      }
      pulse.className = "";
      const step = training.lastStep + 1;
      pulse.textContent = news.steps ? `step ${step.toLocaleString("en")} of ${news.steps.toLocaleString("en")}` : `step ${step.toLocaleString("en")}`;
      document.body.dataset.step = step;
    } catch (error) {
      // The run does not depend on the server, nor the page: what is drawn stays.
      wait += 1;
      pulse.className = "stale";
      pulse.textContent = "no answer from the server";
    }
    setTimeout(ask, Math.min(16000, 2000 * 2 ** Math.min(3, wait)));
  };
  ask();
};

theme.start();
document.getElementById("title").textContent = data.title;
document.getElementById("subtitle").textContent = data.subtitle;
document.getElementById("theme").addEventListener("click", theme.turn);
document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
document.addEventListener("keydown", keys);
if (data.clouds) addRoom("Clouds", (room) => new CloudRoom(data.clouds, room));
if (data.densities) addRoom("Densities", (room) => new DensityRoom(data.densities, room));
if (data.topics?.length) addRoom("Topics", (room) => topicsRoom(data.topics, room));
if (data.metrics || data.live) addRoom("Training", (room) => new TrainingRoom(data.metrics || {}, room));
if (data.pictures?.length || data.live) addRoom("Pictures", (room) => picturesRoom(data.pictures || [], room));
if (data.numbers?.length) addRoom("Numbers", (room) => numbersRoom(data.numbers, room));
if (data.live) {
  const training = rooms.find(({ name }) => name === "Training"), pictures = rooms.find(({ name }) => name === "Pictures");
  follow(make(training), make(pictures));
}
if (rooms.length) show(0);
