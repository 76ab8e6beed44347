// A bisection that runs: what happens is told as it happens, and sections that have changed are drawn anew.
(() => {
  "use strict";
  const list = document.getElementById("happened");
  const [most, pause] = [12, 5000];  // lines; milliseconds between two drawings
  let timer = null;
  const redraw = async () => {
    timer = null;
    const answer = await fetch(location.href);
    if (!answer.ok || answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (fresh.querySelector("#sections[data-stale]")) soon();
    for (const place of ["body > header", "#doing"]) {
      const [old, made] = [document, fresh].map((one) => one.querySelector(place));
      if (old && made && !old.contains(document.activeElement)) old.replaceWith(made);
    }
    for (const made of fresh.querySelectorAll("#sections > section")) {
      const old = document.getElementById(made.id);
      // What somebody reads or uses is left as it is until it changes again.
      if (!old) document.getElementById("sections").append(made);
      else if (!old.contains(document.activeElement) && !old.querySelector("details[open], .uplot")) old.replaceWith(made);
    }
  };
  const soon = () => { timer ??= setTimeout(redraw, pause); };
  const tell = (text) => {
    const line = document.createElement("li");
    line.textContent = text;
    list.prepend(line);
    while (list.children.length > most) list.lastElementChild.remove();
  };
  const events = new EventSource(list.dataset.events);
  events.addEventListener("event", (message) => {
    const event = JSON.parse(message.data);
    tell([event.testbed, event.label, event.text].filter(Boolean).join(": "));
    soon();
  });
  for (const last of ["end", "problem"]) {
    events.addEventListener(last, (message) => {
      events.close();
      const why = JSON.parse(message.data).detail;
      if (why) tell(why); else location.reload();
    });
  }
})();
