// The numbers of a lesson: a slider over the places of each, and a way back.

const SETTLED = 150; // ms: an arrow key that is held down is one move, not fifty

function render({ model, el: host }) {
  const start = model.get("state");
  const root = frame(host, "sliders", `Numbers of lesson ${start.lesson}`);
  const live = announcer();
  const rows = start.numbers.map(({ name }) => slider(name));
  const reset = el("button", { type: "button", onclick: giveBack }, "Reset");
  root.append(...rows.map((row) => row.node), el("div", { className: "ae-row" }, reset), live.node);

  function slider(name) {
    const row = { name, places: [], whole: true, timer: null, held: false };
    row.input = el("input", { type: "range", min: 0, step: 1, oninput: moved, onchange: settled });
    row.value = el("output", { className: "ae-number" });
    row.value.setAttribute("aria-hidden", "true"); // the slider itself says it
    row.ends = el("span", { className: "ae-quiet ae-ends" });
    row.node = el("div", { className: "ae-slider" }, el("label", {}, el("code", {}, name), row.input), row.value, row.ends);
    row.input.addEventListener("pointerdown", () => (row.held = true));
    for (const name of ["pointerup", "pointercancel"]) row.input.addEventListener(name, released);
    row.input.addEventListener("blur", () => row.timer && send());

    function moved() {
      say(row, row.places[row.input.valueAsNumber]);
      clearTimeout(row.timer);
      row.timer = setTimeout(() => row.held || send(), SETTLED);
    }
    function released() {
      row.held = false;
      if (!row.timer) draw(model.get("state"));
    }
    function settled() {
      row.held = false;
      clearTimeout(row.timer);
      row.timer = setTimeout(send, SETTLED);
    }
    function send() {
      clearTimeout(row.timer);
      row.timer = null;
      row.held = false;
      const value = row.places[row.input.valueAsNumber];
      live.say("", `${name}: ${text(row, value)}, handed to the notebook …`);
      act(model, "move", name, value);
    }
    return row;
  }

  function giveBack() {
    live.say("", "giving the lesson's own numbers back …");
    act(model, "reset");
  }

  function draw(state) {
    state.numbers.forEach(({ value, places, whole }, place) => {
      const row = rows[place];
      if (row.timer || row.held) return; // still being moved
      Object.assign(row, { places, whole });
      row.input.max = places.length - 1;
      row.input.value = places.indexOf(value);
      row.ends.textContent = `${text(row, places[0])} to ${text(row, places.at(-1))}`;
      say(row, value);
    });
    live.say("", state.problem || state.message);
  }
  return follow(model, draw);
}

// The slider counts places; what is read out and shown is the number at that place.
function say(row, value) {
  row.value.textContent = text(row, value);
  row.input.setAttribute("aria-valuetext", text(row, value));
}

function text(row, value) {
  return row.whole || !Number.isInteger(value) ? String(value) : value.toFixed(1);
}

export default { render };
