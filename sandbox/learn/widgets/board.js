// The live board. Values come one by one into the model, by name: `ids`, `row:<id>`, `step:<id>:<n>`, `events`, `now`.
// `now` is the database's clock and comes with each message; from its arrival on the page counts by itself.

const SILENT_SECONDS = 10; // five beats of the kernel
const COLUMNS = ["Job", "Task", "State", "Progress", "Attempt", "Time", "Why it ended"];
const LANE_NAMES = ["worker", "items", "signal", "handler", "row"];

function render({ model, el: host }) {
  const lab = model.get("state").lab;
  const root = frame(host, "board", `Live board of lab ${lab}`);
  const live = announcer(); // ends of jobs
  const answer = announcer(); // what came of a press of a button; an end must not take its place
  const status = el("span", { className: "ae-quiet" });
  const pauseButton = el("button", { type: "button", onclick: togglePause });
  const body = el("tbody");
  const table = el(
    "table",
    {},
    el("caption", {}, `Jobs of lab ${lab}, oldest first`),
    el("thead", {}, el("tr", {}, COLUMNS.map((name) => el("th", { scope: "col" }, name)))),
    body,
  );
  const more = el("p", { className: "ae-quiet" });
  const events = list("Newest events");
  const story = list("");
  const strip = el("div", { className: "ae-strip" });
  events.node.classList.add("ae-newest");
  events.items.tabIndex = 0; // it scrolls
  events.items.setAttribute("aria-label", "Newest events");
  story.node.insertBefore(strip, story.items);
  root.append(
    el("div", { className: "ae-row" }, pauseButton, status),
    el("div", { className: "ae-table" }, table),
    more,
    story.node,
    events.node,
    answer.node,
    live.node,
  );

  let begun = false; // what had ended before the first drawing is not announced
  const rows = new Map(); // id -> its cells, and the value they show
  let ahead = model.get("now") - performance.now() / 1000; // of the page's clock
  let heard = performance.now();
  let paused = model.get("state").paused;
  let selected = model.get("state").selected;
  let asked = { paused: null }; // what the kernel has been told and has not answered
  let told = { selected, problem: "" };
  let drawn = { events: null, steps: null, of: null };

  const now = () => performance.now() / 1000 + ahead;
  const silent = () => (performance.now() - heard) / 1000;
  const stopped = () => model.get("state").stopped;

  function togglePause() {
    paused = !paused;
    asked.paused = paused;
    act(model, paused ? "pause" : "resume");
    heard = performance.now();
    draw();
    answer.say("", paused ? "Updates paused." : "Updates on.");
  }

  function select(id) {
    selected = selected === id ? null : id;
    act(model, "select", selected);
    drawMarks();
    drawStory();
    answer.say("", selected ? `Story of job ${short(selected)} shown below the table.` : "Story hidden.");
  }

  const short = (id) => rows.get(id)?.shown?.short ?? String(id).slice(0, 8);

  // Each message sets `now`, after everything else that it brings.
  function arrived() {
    heard = performance.now();
    ahead = Math.max(ahead, model.get("now") - heard / 1000); // a message that was held up says nothing new about the time
    if (!paused) draw();
  }

  function stateChanged() {
    const state = model.get("state");
    if (asked.paused === null || asked.paused === state.paused) {
      asked.paused = null;
      if (paused && !state.paused) heard = performance.now();
      paused = state.paused;
    }
    if (state.selected !== told.selected) selected = state.selected;
    if (state.problem !== told.problem && state.problem) answer.say("not yet", state.problem);
    told = { selected: state.selected, problem: state.problem };
    draw();
  }

  function draw() {
    drawStatus();
    if (paused && rows.size) return drawMarks(), drawStory();
    drawRows();
    const left = model.get("more");
    setText(more, left ? `and ${left} more, added earlier` : "");
    drawEvents();
    drawMarks();
    drawStory();
  }

  function drawStatus() {
    setText(pauseButton, paused ? "Resume updates" : "Pause updates");
    pauseButton.disabled = Boolean(stopped());
    const state = model.get("state");
    const quiet = !paused && !stopped() && silent() > SILENT_SECONDS;
    const text = stopped()
      ? `■ Stopped. ${stopped()}`
      : paused
        ? "‖ Paused: the jobs go on."
        : quiet
          ? `? No news from the kernel for ${seconds(silent())}. If it was restarted, run the cell again.`
          : state.note
            ? `! ${state.note}`
            : "► Live";
    setText(status, text);
    status.classList.toggle("ae-alarm", Boolean(stopped() || quiet || state.note));
  }

  function drawRows() {
    const ids = model.get("ids") || [];
    const ended = [];
    for (const [id, row] of rows) {
      if (ids.includes(id)) continue;
      row.node.remove();
      rows.delete(id);
    }
    ids.forEach((id, place) => {
      const value = model.get(`row:${id}`);
      if (!value) return;
      let row = rows.get(id);
      if (!row) rows.set(id, (row = newRow(id)));
      // Those before it are in place; moving a node would take its focus.
      if (body.children[place] !== row.node) body.insertBefore(row.node, body.children[place] || null);
      if (row.shown === value) return;
      if (value.over && !row.shown?.over && begun) ended.push(value);
      patch(row, value);
    });
    if (!rows.size && !body.childElementCount) body.append(el("tr", { className: "ae-none" }, el("td", { colSpan: COLUMNS.length }, "No jobs yet.")));
    else if (rows.size) body.querySelector(".ae-none")?.remove();
    begun = true;
    if (ended.length) live.say("", endings(ended));
  }

  function newRow(id) {
    const text = el("span", { className: "ae-text" });
    const button = el("button", { type: "button", onclick: () => select(id) }, text);
    const bar = el("progress", { hidden: true });
    const cells = { task: el("td"), state: el("td"), count: el("span"), attempt: el("td"), time: el("td"), why: el("td") };
    const mark = el("span", { className: "ae-mark", ariaHidden: "true" });
    const word = el("span");
    cells.state.append(mark, " ", word);
    const progress = el("td", {}, bar, " ", cells.count);
    const node = el(
      "tr",
      {},
      el("th", { scope: "row" }, button),
      cells.task,
      cells.state,
      progress,
      cells.attempt,
      cells.time,
      cells.why,
    );
    return { node, button, text, bar, cells, mark, word, shown: null };
  }

  function patch(row, value) {
    setText(row.text, value.short);
    row.button.setAttribute("aria-label", `${value.short}: story of this job`);
    setText(row.cells.task, value.task);
    setText(row.mark, value.mark);
    setText(row.word, value.word);
    row.cells.state.className = `ae-state ae-${value.state}`;
    const known = value.total != null;
    row.bar.hidden = !known;
    if (known) {
      row.bar.max = Math.max(value.total, 1);
      row.bar.value = value.total ? Math.min(value.done, value.total) : 1;
      row.bar.setAttribute("aria-label", `progress of job ${value.short}`);
    }
    setText(row.cells.count, known ? `${value.done} of ${value.total}` : value.done ? `${value.done} done` : "");
    setText(row.cells.attempt, value.attempt);
    setText(row.cells.time, timeText(value, now()));
    setText(row.cells.why, value.why);
    row.shown = value;
  }

  function drawMarks() {
    for (const [id, row] of rows) row.button.setAttribute("aria-pressed", String(id === selected));
  }

  function drawEvents() {
    const found = model.get("events") || [];
    if (found === drawn.events) return;
    drawn.events = found;
    const text = (one) => [`${one.at.toFixed(2)} s `, el("code", {}, one.job || "-"), ` ${one.text}`];
    events.items.replaceChildren(...[...found].reverse().map((one) => el("li", {}, text(one))));
    setText(events.title, found.length ? "Newest events, seconds since the first" : "No events yet");
  }

  function drawStory() {
    const row = selected && rows.get(selected);
    story.node.hidden = !row;
    if (!row) return;
    const steps = [];
    for (let place = 0; place < row.shown.steps; place += 1) steps.push(model.get(`step:${selected}:${place}`));
    const same = drawn.of === selected && drawn.steps?.length === steps.length && steps.every((one, n) => one === drawn.steps[n]);
    if (same && drawn.over === row.shown.over) return;
    drawn = { ...drawn, steps, of: selected, over: row.shown.over };
    const known = steps.filter(Boolean);
    const name = `Story of job ${row.shown.short}`;
    setText(story.title, known.length ? `${name}, seconds since its first event` : `${name}: no events yet`);
    strip.replaceChildren(...(known.length ? [picture(known, row.shown)] : []));
    const start = known[0]?.at ?? 0;
    const texts = known.map((one) => `${(one.at - start).toFixed(2)} s  ${one.lane}: ${one.text}`);
    while (story.items.childElementCount > texts.length) story.items.lastChild.remove();
    texts.forEach((text, place) => {
      if (!story.items.children[place]) story.items.append(el("li"));
      setText(story.items.children[place], text);
    });
  }

  function tick() {
    drawStatus();
    if (paused || stopped() || silent() > SILENT_SECONDS) return;
    for (const row of rows.values()) if (row.shown && !row.shown.over) setText(row.cells.time, timeText(row.shown, now()));
  }

  model.on("change:now", arrived);
  model.on("change:state", stateChanged);
  draw();
  const timer = setInterval(tick, 1000);
  return () => {
    clearInterval(timer);
    model.off("change:now", arrived);
    model.off("change:state", stateChanged);
  };
}

function list(title) {
  const heading = el("p", { className: "ae-question" }, title);
  const items = el("ol", { className: "ae-list" });
  return { title: heading, items, node: el("div", { className: "ae-part" }, heading, items) };
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function endings(ended) {
  if (ended.length <= 3) return ended.map((one) => `job ${one.short} ended: ${one.word}`).join("; ");
  const counts = new Map();
  for (const one of ended) counts.set(one.word, (counts.get(one.word) || 0) + 1);
  return `${ended.length} jobs ended: ${[...counts].map(([word, count]) => `${count} ${word}`).join(", ")}`;
}

function seconds(value) {
  const whole = Math.floor(value);
  return whole < 120 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

// As time_text in board_rows.py.
function timeText(row, now) {
  if (row.ended != null) {
    const took = Math.max(0, row.ended - row.since);
    const text = took < 120 ? `${took.toFixed(1)} s` : seconds(took);
    return row.ran ? `took ${text}` : `never began, waited ${text}`;
  }
  const since = seconds(Math.max(0, now - row.since));
  if (row.state === "pending") return row.ran ? `${since} since it was added` : `waiting for ${since}`;
  const limits = ["soft", "hard"].filter((name) => row[name] != null);
  for (const name of limits) if (row[name] > now) return `${seconds(Math.ceil(row[name] - now))} until the ${name} limit`;
  if (limits.length) return `past its limit by ${seconds(now - row[limits.at(-1)])}`;
  return `running for ${since}, no limit`;
}

// --- the strip: lanes from top to bottom, seconds from left to right; the list below it says the same

const SHAPES = {
  queued: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0M-2 0h4",
  accepted: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
  started: "M-4-6L6 0L-4 6z",
  "item done": "M0-7V7",
  "item failed": "M-5-5L5 5M-5 5L5-5",
  committed: "M-2-6V6M2-6V6",
  "soft signal": "M-6-5H6L0 6z",
  caught: "M-5-5H5V5H-5z",
  swallowed: "M0-6V6M-6 0H6",
  finished: "M0-7L2-2L7-2L3 1L5 7L0 3L-5 7L-3 1L-7-2L-2-2z",
  returned: "M-5-5H5V5H-5zM-2 0H2",
  killed: "M0-7L7 0L0 7L-7 0zM-3-3L3 3M-3 3L3-3",
};
const OPEN = ["queued", "item done", "item failed", "committed", "swallowed", "returned", "killed"]; // drawn by lines alone

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function picture(steps, row) {
  const [left, width, height, top] = [64, 700, 30, 20];
  const start = steps[0].at;
  const end = Math.max(...steps.map((one) => one.until), start + 0.001);
  const x = (at) => left + 12 + ((at - start) / (end - start)) * (width - left - 40);
  const y = (lane) => top + LANE_NAMES.indexOf(lane) * height;
  const node = svg("svg", { viewBox: `0 0 ${width} ${top + LANE_NAMES.length * height}`, role: "img" });
  node.setAttribute("aria-label", `Story of job ${row.short} as a strip; the numbered list below says the same.`);
  for (const lane of LANE_NAMES) {
    node.append(svg("text", { x: 0, y: y(lane) + 4, class: "ae-lane" }, lane));
    node.append(svg("line", { x1: left, x2: width, y1: y(lane), y2: y(lane), class: "ae-lane-line" }));
  }
  const began = steps.find((one) => one.kind === "started");
  const finished = steps.find((one) => one.kind === "finished");
  if (began) {
    const until = finished ? x(finished.at) : width;
    node.append(svg("line", { x1: x(began.at), x2: until, y1: y("row"), y2: y("row"), class: "ae-bar" }));
    if (!finished && !row.over) node.append(svg("text", { x: width, y: y("row") + 18, class: "ae-end" }, `still ${row.word} →`));
  }
  const labelled = {};
  steps.forEach((one, place) => {
    const [at, until] = [x(one.at), x(one.until)];
    if (until - at > 2) node.append(svg("line", { x1: at, x2: until, y1: y(one.lane), y2: y(one.lane), class: "ae-run" }));
    const mark = svg("path", { d: SHAPES[one.kind] || "M-4 0h2M-1 0h2M2 0h2", transform: `translate(${at} ${y(one.lane)})` });
    mark.setAttribute("class", `ae-shape ${OPEN.includes(one.kind) ? "ae-open" : ""} ae-k-${one.kind.replace(" ", "-")}`);
    node.append(mark);
    // Its number in the list; marks that lie together share a label.
    const label = labelled[one.lane];
    if (label && at - label.at < 15) {
      label.node.textContent = `${label.first}…${place + 1}`;
      return;
    }
    labelled[one.lane] = { at, first: place + 1, node: svg("text", { x: at, y: y(one.lane) - 9, class: "ae-number" }, String(place + 1)) };
    node.append(labelled[one.lane].node);
  });
  return node;
}

export default { render };
