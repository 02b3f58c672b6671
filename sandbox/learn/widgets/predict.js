// A question before a run: choose an outcome, lock it in, run the next cell, and see.

let groups = 0; // radio buttons belong together by name, and the same item may be on the page twice

function render({ model, el: host }) {
  const start = model.get("state");
  // A cell that is run before the answer is locked in would tell the outcome to somebody who only forgot to press the button.
  const root = frame(host, "predict", `Prediction ${start.id}`, () => lock.getAttribute("aria-disabled") === "true");
  const live = announcer();
  const name = `ae-predict-${start.id}-${groups++}`;
  const rows = start.options.map((text, place) => {
    const input = el("input", { type: "radio", name, value: place });
    const said = el("span", { className: "ae-said" });
    const node = el("label", { className: "ae-outcome" }, input, el("span", { className: "ae-text" }, text), said);
    return { input, said, node };
  });
  const lock = el("button", { type: "button", onclick: lockIn }, "Lock in");
  const again = el("button", { type: "button", hidden: true, onclick: startOver }, "Predict again");
  root.append(
    el(
      "fieldset",
      { className: "ae-outcomes" },
      el("legend", { className: "ae-question" }, ...rich(start.question)),
      start.code && el("pre", { className: "ae-code", tabIndex: 0, role: "group", "aria-label": "the program" }, start.code),
      ...rows.map((row) => row.node),
    ),
    el("div", { className: "ae-row" }, lock, again),
    live.node,
  );
  let words = null; // what the live region says: the same words again would be read out again

  function lockIn() {
    if (lock.getAttribute("aria-disabled") === "true") return;
    const chosen = rows.findIndex((row) => row.input.checked);
    if (chosen < 0) return say("", "Choose an outcome first.");
    close(true);
    lock.textContent = "Locking in …";
    say("", "locking in; if a cell is running, as soon as it has ended …");
    act(model, "answer", chosen);
  }
  function startOver() {
    say("", "starting over …");
    act(model, "again");
  }
  function close(closed) {
    rows.forEach((row) => (row.input.disabled = closed));
    lock.setAttribute("aria-disabled", String(closed)); // and not disabled, so that it keeps the focus
  }
  function say(verdict, told, message = "") {
    if (words === `${verdict}|${told}|${message}`) return;
    words = `${verdict}|${told}|${message}`;
    live.say("", message || told);
    live.node.classList.toggle("ae-right", verdict === "right");
    live.node.classList.toggle("ae-not-yet", verdict === "not yet");
    const mark = { right: "✓ ", "not yet": "✗ " }[verdict] || "";
    if (message) live.node.prepend(el("strong", {}, mark + told), " ");
  }

  let before = start;
  return follow(model, (state) => {
    const { locked, ended } = state;
    const free = locked === null && ended === null;
    const here = root.contains(document.activeElement);
    if (locked !== null) rows[locked].input.checked = true;
    else if (before.locked !== null || ended !== null) rows.forEach((row) => (row.input.checked = false));
    close(!free);
    rows.forEach((row, place) => {
      const notes = [place === locked && "you said this", place === ended && "this is what happened"].filter(Boolean);
      row.said.textContent = notes.length ? `← ${notes.join(", ")}` : "";
      row.node.classList.toggle("ae-locked", place === locked);
      row.node.classList.toggle("ae-ended", place === ended);
    });
    lock.textContent = locked !== null ? "Locked in" : ended !== null ? "Too late to predict" : "Lock in";
    again.hidden = ended === null;
    if (before.ended !== null && free && here) rows[0].input.focus(); // the button that had it is gone
    if (state.problem) say("", state.problem);
    else if (ended !== null) say(state.verdict, state.told, state.message);
    else say("", locked !== null ? "Your answer is locked in. Run the next cell." : "");
    before = state;
  });
}

export default { render };
