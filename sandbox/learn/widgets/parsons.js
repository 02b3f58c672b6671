// Lines to put in order. The page moves them at once and tells the kernel; the kernel's word counts unless it is overtaken.

const STEP = 4; // characters of a step of indentation

function render({ model, el: host }) {
  const start = model.get("state");
  const root = frame(host, "parsons", `Lines to order ${start.id}`);
  const live = announcer();
  let turn = start.turn;
  let answer = start.answer.map(([place, steps]) => ({ place, steps }));
  let held = null; // the line that is being dragged
  let dragged = false; // the click that ends a drag is no click

  const name = (place) => String.fromCharCode(97 + place);
  const lines = start.lines.map((text, place) => {
    const where = el("span", { className: "ae-where" });
    const button = el(
      "button",
      {
        type: "button",
        className: "ae-line",
        onclick: (event) => clicked(place, event),
        onkeydown: (event) => pressed(place, event),
        onpointerdown: (event) => grab(place, event),
        onpointermove: drag,
        onpointerup: drop,
        onpointercancel: letGo,
      },
      el("span", { className: "ae-letter" }, `${name(place)})`),
      el("span", { className: "ae-text" }, text),
      where,
    );
    return { button, where, text };
  });
  const left = el("div", { className: "ae-lines", role: "group", "aria-label": "lines to choose from" });
  const built = el("div", { className: "ae-lines ae-built", role: "group", "aria-label": "your answer" });
  const marker = el("div", { className: "ae-marker" });
  const typed = el("input", {
    type: "text",
    className: "ae-order",
    placeholder: "c, a>, b>>",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: false,
    onkeydown: (event) => {
      if (event.key === "Enter" && !event.isComposing && !event.shiftKey && !event.ctrlKey) {
        event.preventDefault();
        checkTyped();
      }
    },
  });
  root.append(
    el("p", { className: "ae-question" }, ...rich(start.question)),
    ...around("the program before the lines", start.before),
    el(
      "div",
      { className: "ae-sides" },
      el("div", { className: "ae-side" }, el("div", { className: "ae-head" }, "Lines to choose from"), left),
      el("div", { className: "ae-side ae-wide" }, el("div", { className: "ae-head" }, "Your answer"), built),
    ),
    ...around("the program after the lines", start.after),
    el(
      "p",
      { className: "ae-quiet" },
      "Drag, or by keys: Enter takes a line or puts it back, ↑ ↓ move it, → ← indent it.",
    ),
    el(
      "div",
      { className: "ae-row" },
      el("button", { type: "button", onclick: check }, "Check"),
      el("button", { type: "button", onclick: clear }, "Put all back"),
    ),
    el(
      "div",
      { className: "ae-row" },
      el("label", { className: "ae-typed" }, "Or type the order, > for each step of indentation: ", typed),
      el("button", { type: "button", onclick: checkTyped }, "Check typed order"),
    ),
    live.node,
  );

  function around(label, code) {
    return code ? [el("pre", { className: "ae-code", tabIndex: 0, role: "region", "aria-label": label }, code)] : [];
  }
  function at(place) {
    return answer.findIndex((line) => line.place === place);
  }
  function written() {
    return answer.map((line) => name(line.place) + ">".repeat(line.steps)).join(" ");
  }

  // Only nodes that stand elsewhere are moved, and the one that has the focus gets it back.
  function arrange(box, nodes) {
    nodes.forEach((node, place) => {
      if (box.children[place] !== node) box.insertBefore(node, box.children[place] || null);
    });
  }
  function draw() {
    const focus = lines.find((line) => line.button === document.activeElement);
    marker.remove();
    arrange(left, lines.filter((_, place) => at(place) < 0).map((line) => line.button));
    arrange(built, answer.map((line) => lines[line.place].button));
    lines.forEach((line, place) => {
      const here = at(place);
      const steps = here < 0 ? 0 : answer[here].steps;
      line.button.style.marginLeft = steps ? `${steps * STEP}ch` : "";
      line.where.textContent = here < 0 ? "" : `, ${position(here)}`;
    });
    if (focus && document.activeElement !== focus.button) focus.button.focus();
  }
  function position(here) {
    const steps = answer[here].steps;
    return `place ${here + 1} of ${answer.length}${steps ? `, indented by ${steps}` : ""}`;
  }
  function changed(words) {
    turn += 1;
    draw();
    live.say("", words);
    act(model, "arrange", written(), turn);
  }
  function put(place, to, steps) {
    answer = answer.filter((line) => line.place !== place);
    answer.splice(to, 0, { place, steps });
    changed(`line ${name(place)} moved to ${position(at(place))}`);
  }
  function putBack(place) {
    answer = answer.filter((line) => line.place !== place);
    changed(`line ${name(place)} put back`);
  }

  function clicked(place, event) {
    // A key makes a click too, with no button that was pressed.
    if (dragged && event.detail > 0) return (dragged = false);
    if (at(place) >= 0) putBack(place);
    else put(place, answer.length, answer.length ? answer[answer.length - 1].steps : 0);
  }
  function pressed(place, event) {
    if (!event.key.startsWith("Arrow") || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault(); // the page would scroll
    const here = at(place);
    if (here < 0) return live.say("", `line ${name(place)} is not in the answer yet: Enter takes it`);
    const { steps } = answer[here];
    const [to, deep] = {
      ArrowUp: [here - 1, steps],
      ArrowDown: [here + 1, steps],
      ArrowRight: [here, steps + 1],
      ArrowLeft: [here, steps - 1],
    }[event.key];
    if (to < 0 || to >= answer.length || deep < 0 || deep > start.deepest) {
      return live.say("", `line ${name(place)} stays at ${position(here)}: it goes no further that way`);
    }
    put(place, to, deep);
  }

  // A finger scrolls the page and taps; mouse and pen drag.
  function grab(place, event) {
    dragged = false;
    if (event.button !== 0 || event.pointerType === "touch") return;
    const box = lines[place].button.getBoundingClientRect();
    held = { place, x: event.clientX, y: event.clientY, inside: event.clientX - box.left, target: null };
    lines[place].button.setPointerCapture(event.pointerId);
  }
  function drag(event) {
    if (!held) return;
    if (!dragged && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 6) return;
    dragged = true;
    lines[held.place].button.classList.add("ae-held");
    const area = built.getBoundingClientRect();
    const within = event.clientX >= area.left - 20 && event.clientX <= area.right + 20;
    if (!within || event.clientY < area.top - 20 || event.clientY > area.bottom + 20) {
      held.target = null;
      marker.remove();
      return;
    }
    const others = answer.filter((line) => line.place !== held.place);
    const middles = others.map((line) => {
      const box = lines[line.place].button.getBoundingClientRect();
      return (box.top + box.bottom) / 2;
    });
    const to = middles.filter((middle) => middle < event.clientY).length;
    // From the other side a line is caught anywhere; in the answer it keeps its indentation unless it is moved sideways.
    const from = at(held.place) < 0 ? area.left + held.inside : held.x - answer[at(held.place)].steps * width();
    const steps = Math.min(start.deepest, Math.max(0, Math.round((event.clientX - from) / width())));
    held.target = { to, steps };
    marker.style.marginLeft = `${steps * STEP}ch`;
    built.insertBefore(marker, to < others.length ? lines[others[to].place].button : null);
  }
  function width() {
    const ruler = el("span", { className: "ae-text ae-ruler" }, "0".repeat(STEP));
    built.append(ruler);
    const found = ruler.getBoundingClientRect().width;
    ruler.remove();
    return found || 32;
  }
  function drop(event) {
    if (!held) return;
    const { place, target } = held;
    letGo();
    if (!dragged) return;
    if (target) put(place, target.to, target.steps);
    else if (at(place) >= 0) putBack(place);
    lines[place].button.focus();
  }
  function letGo() {
    if (held) lines[held.place].button.classList.remove("ae-held");
    held = null;
    marker.remove();
  }

  function check() {
    turn += 1;
    live.say("", "checking …");
    act(model, "answer", written(), turn);
  }
  function checkTyped() {
    live.say("", "checking …");
    turn += 1;
    act(model, "answer", typed.value, turn);
  }
  function clear() {
    answer = [];
    changed("all lines put back");
  }

  draw();
  return follow(model, (state) => {
    if (state.turn < turn) return; // lines have been moved since
    turn = state.turn;
    if (state.problem) return live.say("", state.problem);
    answer = state.answer.map(([place, steps]) => ({ place, steps }));
    draw();
    if (!state.verdict) return; // a move that came back; it has been announced
    const skipped = state.verdict === "not attempted";
    const told = [state.score, state.message].filter(Boolean).join(". ");
    live.say(skipped ? "" : state.verdict, skipped ? `Not attempted: ${told}` : told);
  });
}

export default { render };
