// A deck of flashcards: look at the front, turn it, say how well you knew it.

function render({ model, el: host }) {
  const start = model.get("state");
  const root = frame(host, "cards", start.title);
  const live = announcer();
  const left = el("p", { className: "ae-quiet" });
  const front = el("p", { className: "ae-front" });
  const ask = el("p", { className: "ae-quiet" });
  const show = el("button", { type: "button", onclick: turn }, "Show");
  const text = el("p");
  const link = el("a", { target: "_blank", rel: "noopener" });
  const back = el(
    "div",
    { className: "ae-back", role: "group", tabIndex: -1, "aria-label": "the other side" },
    text,
    el("p", { className: "ae-quiet" }, link),
  );
  const look = el("button", { type: "button", onclick: again }, "Look again");
  const rates = start.ratings.map((name, place) => {
    const when = el("span", { className: "ae-when" });
    const button = el("button", { type: "button", onclick: () => rate(place) }, `${place + 1} ${name}: `, when);
    button.setAttribute("aria-keyshortcuts", String(place + 1));
    return { name, when, button };
  });
  const card = el(
    "div",
    { className: "ae-card" },
    left,
    front,
    el("div", { className: "ae-turn" }, ask, show),
    back,
    el("div", { className: "ae-row ae-rates", role: "group", "aria-label": "how well did you know it?" }, ...rates.map((r) => r.button)),
  );
  root.append(card, live.node, el("div", { className: "ae-none" }, look));
  root.addEventListener("keydown", (event) => {
    const place = "1234".indexOf(event.key);
    if (event.key.length === 1 && place >= 0 && !event.ctrlKey && !event.metaKey && !event.altKey) rate(place);
  });

  let shown = false; // the page turns the card at once, also while the kernel is busy
  let waiting = false;

  function turn() {
    reveal(true);
    back.focus();
    act(model, "show");
  }

  function rate(place) {
    if (!shown || waiting) return;
    waiting = true;
    rates.forEach(({ button }, other) => button.setAttribute("aria-pressed", String(other === place)));
    live.say("", `${rates[place].name} …`);
    act(model, "rate", rates[place].name);
  }

  function again() {
    live.say("", "looking …");
    act(model, "look");
  }

  function reveal(yes) {
    shown = yes;
    card.classList.toggle("ae-shown", yes);
  }

  let drawn = "";
  return follow(model, (state) => {
    const had = root.contains(document.activeElement);
    const turned = waiting || state.term !== drawn || state.shown;
    waiting = false;
    drawn = state.term;
    root.classList.toggle("ae-is-over", !state.term);
    left.textContent = `${state.title}: ${state.left} left`;
    front.textContent = state.front;
    ask.textContent = state.ask;
    text.textContent = state.back;
    link.textContent = `${state.term} in the glossary`;
    link.href = state.link;
    rates.forEach(({ when, button }, place) => {
      when.textContent = state.when[place] ?? "";
      button.setAttribute("aria-pressed", "false");
    });
    if (turned) reveal(Boolean(state.term) && state.shown);
    live.say("", state.problem || `${state.message} ${state.over}`.trim());
    if (had && !root.contains(visible(document.activeElement))) (state.term ? show : look).focus();
  });
}

// Nothing, if the node that has the focus has just been hidden.
function visible(node) {
  return node && node.getClientRects().length ? node : null;
}

export default { render };
