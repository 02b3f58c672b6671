// Hints one at a time: every title can be read, one button opens the next step.

function render({ model, el: host }) {
  const start = model.get("state");
  const root = frame(host, "hints", `Hints for exercise ${start.id}`);
  const live = announcer();
  const steps = start.titles.map((title) => {
    const text = el("p", { className: "ae-hint-text", hidden: true });
    const closed = el("span", { className: "ae-quiet" }, " (closed)");
    return { text, closed, node: el("li", {}, el("strong", {}, ...rich(title)), closed, text) };
  });
  // Read out when a step's text comes into it.
  const list = el("ol", { className: "ae-hint-steps", "aria-live": "polite" }, ...steps.map((step) => step.node));
  const button = el("button", { type: "button", onclick: open });
  let done = 0;
  let asked = 0; // the step that the page has asked for and not got yet

  root.append(
    el("p", { className: "ae-question" }, `Hints for ${start.id} ${start.title}`),
    list,
    el("div", { className: "ae-row" }, button),
    live.node,
  );

  function open() {
    if (done >= start.titles.length || asked > done) return;
    asked = done + 1;
    live.say("", `opening hint ${asked} …`);
    act(model, "reveal", asked);
  }

  return follow(model, (state) => {
    done = state.texts.length;
    asked = 0;
    steps.forEach((step, place) => {
      const isOpen = place < done;
      step.closed.hidden = isOpen;
      if (isOpen && step.text.hidden) step.text.replaceChildren(...rich(state.texts[place]));
      step.text.hidden = !isOpen;
    });
    // It keeps its place when there is nothing left to open: a button that goes away takes the focus with it.
    const all = done >= state.titles.length;
    button.setAttribute("aria-disabled", String(all));
    button.textContent = all ? "All hints are open" : `Open hint ${done + 1}: ${state.titles[done]}`;
    if (state.problem) live.say("", state.problem);
    else live.say("", all ? state.next : `${done} of ${state.titles.length} hints are open.`);
  });
}

export default { render };
