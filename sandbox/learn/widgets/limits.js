// One job on a timeline: drag its limits, and the kernel's Deadline says which of them ends it.

const LEFT = 112, RIGHT = 40, MINUTE = 10; // in the picture's own units; it is scaled to the width there is
const TOP = 26, LANE = 40, BAR = 12;
const JUMP = 10; // minutes, by PageUp and PageDown; an arrow key is one
const SETTLED = 400; // ms: an arrow key that is pressed ten times is one position to keep, not ten
const LATE = 250; // ms without an answer: the kernel is doing something else
const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: JUMP, PageDown: -JUMP };
const MARK = { completed: "✓", timed_out: "◷", expired: "✗" };
const NAMES = ["wait", "timeout", "deadline", "work"];
const LANES = ["in the queue", "timeout", "deadline", "work", "what happens"];
const TITLE = { wait: "wait in the queue", timeout: "timeout of the attempt", deadline: "deadline", work: "length of the work" };
let pictures = 0; // the patterns of each need names of their own

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const x = (minute) => LEFT + minute * MINUTE;
const y = (lane) => TOP + lane * LANE + LANE / 2;
const short = (minutes) => String(Math.round(minutes * 100) / 100);
const spoken = (minutes) => `${short(minutes)} ${minutes === 1 ? "minute" : "minutes"}`;

function render({ model, el: host }) {
  const { axis, ranges } = model.get("state");
  const bottom = TOP + LANES.length * LANE;
  const root = frame(host, "limits", "Timeline of a job and its two limits");
  const live = announcer();
  const id = `ae-limits-${pictures++}`;
  const bars = Object.fromEntries([...NAMES, "waited", "ran"].map((name) => [name, svg("rect", { height: BAR, class: `ae-bar ae-bar-${name}` })]));
  const starts = svg("line", { class: "ae-starts", y1: TOP, y2: bottom });
  const due = svg("line", { class: "ae-due", y1: TOP, y2: bottom });
  const end = svg("text", { class: "ae-end", y: y(4) + 5 });
  const values = Object.fromEntries(NAMES.map((name, lane) => [name, svg("text", { class: "ae-value", y: y(lane) + 5 })]));
  const handles = Object.fromEntries(NAMES.map((name) => [name, handle(name)]));
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${x(axis) + RIGHT} ${bottom + 46}`, role: "group", "aria-label": `minutes 0 to ${axis} since the job was enqueued` },
    svg(
      "defs",
      {},
      pattern("dots", svg("circle", { cx: 3, cy: 3, r: 1.4 })),
      pattern("lines", svg("path", { d: "M0 6L6 0" })),
      pattern("cross", svg("path", { d: "M0 6L6 0M0 0L6 6" })),
    ),
    ...ticks(),
    ...LANES.map((name, lane) => svg("text", { x: 0, y: y(lane) + 5, class: lane === 4 ? "ae-lane ae-last" : "ae-lane" }, name)),
    starts,
    due,
    ...Object.values(bars),
    ...Object.values(values),
    end,
    ...Object.values(handles),
  );
  bars.waited.style.fill = `url(#${id}-dots)`;
  root.append(
    el("p", { className: "ae-question" }, "Which of the two limits ends this job?"),
    el("p", { className: "ae-quiet" }, "Drag a round handle, or focus it and use the arrow keys (one minute), PageUp and PageDown (ten), Home and End."),
    el("div", { className: "ae-picture" }, picture),
    live.node,
    el(
      "p",
      { className: "ae-quiet" },
      "Dots: the job waits in the queue. Filled: an attempt runs. It ends ✓ completed (plain), ◷ timed_out (stripes), or ✗ expired " +
        "(crossed). Broken line: the attempt starts, and the timeout begins to count. Thick line: the deadline.",
    ),
    el("div", { className: "ae-row" }, el("button", { type: "button", onclick: back }, "Back to the lesson's numbers")),
  );

  let shown = { ...model.get("state").values }; // where the handles are
  let wanted = null; // what the kernel has yet to be asked: at most one request is on its way, with the newest position
  let sent = null;
  let flying = false;
  let held = null; // the handle under the pointer, and how far from its middle it was taken
  let settling = null;
  let late = null;
  let words = null; // what is announced: the same words again would be read out again

  function pattern(name, mark) {
    return svg("pattern", { id: `${id}-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", class: "ae-pattern" }, mark);
  }
  function ticks() {
    const marks = [];
    for (let minute = 0; minute <= axis; minute += 5) {
      marks.push(svg("line", { x1: x(minute), x2: x(minute), y1: TOP, y2: bottom + 5, class: "ae-tick" }));
      if (minute % 10 === 0) marks.push(svg("text", { x: x(minute), y: bottom + 20, class: "ae-minute" }, minute));
    }
    const title = svg("text", { x: x(axis / 2), y: bottom + 40, class: "ae-minute" }, "minutes since the job was enqueued");
    return [...marks, svg("line", { x1: x(0), x2: x(axis), y1: bottom, y2: bottom, class: "ae-axis" }), title];
  }
  function handle(name) {
    const node = svg(
      "g",
      { class: "ae-handle", role: "slider", tabindex: 0, "aria-label": TITLE[name], "aria-orientation": "horizontal" },
      svg("rect", { x: -16, y: -18, width: 32, height: 36, class: "ae-ring", rx: 6 }),
      svg("circle", { r: 9 }),
      svg("path", { d: "M-2 -4L-6 0L-2 4M2 -4L6 0L2 4" }),
    );
    node.setAttribute("aria-valuemin", ranges[name][0]);
    node.setAttribute("aria-valuemax", ranges[name][1]);
    node.addEventListener("pointerdown", (event) => take(event, name));
    node.addEventListener("pointermove", (event) => held?.name === name && go(name, minuteAt(event) - held.off - from(name)));
    for (const over of ["pointerup", "pointercancel"]) node.addEventListener(over, () => held?.name === name && drop());
    node.addEventListener("keydown", (event) => key(event, name));
    node.addEventListener("blur", () => settling && keep());
    return node;
  }

  // What a handle's number counts from: an attempt's time and its work from its start, the rest from zero.
  function from(name) {
    return name === "timeout" || name === "work" ? shown.wait : 0;
  }
  function minuteAt(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    return (point.x - LEFT) / MINUTE;
  }
  function take(event, name) {
    if (event.button !== 0) return;
    event.preventDefault(); // no text is selected on the way
    handles[name].focus({ preventScroll: true });
    handles[name].setPointerCapture(event.pointerId);
    held = { name, off: minuteAt(event) - from(name) - shown[name] };
  }
  function drop() {
    held = null;
    keep();
  }
  function key(event, name) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = event.key === "Home" ? ranges[name][0] : event.key === "End" ? ranges[name][1] : shown[name] + KEYS[event.key];
    if (Number.isNaN(to)) return;
    event.preventDefault();
    go(name, to);
    clearTimeout(settling);
    settling = setTimeout(keep, SETTLED);
  }
  function go(name, minutes) {
    const [low, high] = ranges[name];
    const value = Math.min(high, Math.max(low, Math.round(minutes)));
    if (value === shown[name]) return;
    shown = { ...shown, [name]: value };
    place();
    ask(false);
  }
  function keep() {
    clearTimeout(settling);
    settling = null;
    ask(true);
  }
  function ask(last) {
    wanted = { values: shown, last };
    send();
  }
  function send() {
    if (flying || !wanted) return;
    sent = wanted;
    post(sent.last ? "move" : "drag", ...NAMES.map((name) => sent.values[name]));
  }
  function back() {
    clearTimeout(settling);
    settling = wanted = null;
    post("again");
  }
  // As `act`, but without a word at first: the handle has moved, and the answer comes before one could read it.
  function post(action, ...values) {
    flying = true;
    clearTimeout(late);
    late = setTimeout(() => tell("", "The kernel is busy. It answers when it is free …"), LATE);
    try {
      model.send({ do: action, with: values });
    } catch {
      clearTimeout(late);
      tell("", "The kernel is a new one: run this cell again.");
    }
  }

  function span(bar, lane, first, last) {
    bar.setAttribute("x", x(first));
    bar.setAttribute("y", y(lane) - BAR / 2);
    bar.setAttribute("width", Math.max(0, last - first) * MINUTE);
  }
  function write(node, minute, text, gap) {
    // Beside the mark; on its other side where the picture would end.
    const turn = minute > axis * 0.7;
    node.setAttribute("x", x(minute) + (turn ? -gap : gap));
    node.setAttribute("text-anchor", turn ? "end" : "start");
    node.textContent = text;
  }
  function place() {
    const { wait, timeout, deadline, work } = shown;
    const at = { wait, timeout: wait + timeout, deadline, work: wait + work };
    const text = {
      wait: `${short(wait)} min, then it starts`,
      timeout: `${short(timeout)} min from the start`,
      deadline: `at ${short(deadline)} min`,
      work: `would take ${short(work)} min`,
    };
    const said = {
      wait: `${spoken(wait)}, then the attempt starts`,
      timeout: `${spoken(timeout)} from the start, until minute ${short(at.timeout)}`,
      deadline: `at minute ${short(deadline)}`,
      work: `${spoken(work)}, until minute ${short(at.work)}`,
    };
    NAMES.forEach((name, lane) => {
      span(bars[name], lane, name === "deadline" ? deadline : from(name), at[name]);
      handles[name].setAttribute("transform", `translate(${x(at[name])} ${y(lane)})`);
      handles[name].setAttribute("aria-valuenow", shown[name]);
      handles[name].setAttribute("aria-valuetext", said[name]);
      write(values[name], at[name], text[name], 20);
    });
    for (const [line, minute] of [[starts, wait], [due, deadline]]) {
      line.setAttribute("x1", x(minute));
      line.setAttribute("x2", x(minute));
    }
  }
  function tell(state, text) {
    if (words === state + text) return;
    words = state + text;
    live.say("", text);
    live.node.className = `ae-live ae-ended-${state}`;
    if (state) live.node.prepend(el("strong", {}, `${MARK[state]} ${state}`), ": ");
  }

  return follow(model, (state) => {
    clearTimeout(late);
    flying = false;
    if (wanted === sent || state.problem) wanted = null;
    if (!wanted && !held && !settling) shown = { ...state.values };
    place();
    const { wait } = state.values;
    span(bars.waited, 4, 0, Math.min(wait, state.at));
    span(bars.ran, 4, wait, state.started ? state.at : wait);
    bars.ran.setAttribute("class", `ae-bar ae-bar-ran ae-ended-${state.ending}`);
    bars.ran.style.fill = { timed_out: `url(#${id}-lines)`, expired: `url(#${id}-cross)` }[state.ending] || "";
    end.setAttribute("class", `ae-end ae-ended-${state.ending}`);
    write(end, state.at, `${MARK[state.ending]} ${state.ending} at ${short(state.at)} min`, 8);
    tell(state.problem ? "" : state.ending, state.problem || state.says);
    send();
  });
}

export default { render };
