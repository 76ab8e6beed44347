// A page of lists: when something has changed, it asks for itself and replaces the parts that are new.
(() => {
  "use strict";
  const [least, share] = [2000, 10];  // milliseconds between two drawings, and of these at most a tenth for the server
  const parts = (page) => [page.querySelector("body > header"), ...page.querySelector("main").children];
  const source = new WeakMap();  // a part -> its text as it was sent, before other scripts added to it
  for (const part of parts(document)) source.set(part, part.outerHTML);
  let since = document.querySelector("main").dataset.revision;
  let [stream, timer, pause, stale, fresh] = [null, null, least, false, null];

  const name = (part) => part.id || part.getAttribute("aria-labelledby") || part.getAttribute("aria-label") || part.className;
  const key = (one) => one.tagName + (one.getAttribute("href") ?? one.getAttribute("aria-label") ?? one.textContent);
  const focusable = (part) => [...part.querySelectorAll("a, summary, [tabindex]")];
  const isChanged = (field) => field.tagName === "SELECT"
    ? field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected))
    : field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  // Somebody writes in it, has zoomed a drawing or marked text.
  const isUsed = (part) => part.querySelector(".uplot") || [...part.querySelectorAll("input, select, textarea")].some(isChanged)
    || (!getSelection().isCollapsed && getSelection().containsNode(part, true));

  const replace = (old, made) => {
    const focus = old.contains(document.activeElement) ? key(document.activeElement) : null;
    const place = focusable(made).findIndex((one) => key(one) === focus);
    if (isUsed(old) || (focus !== null && place < 0)) return false;
    const copy = document.importNode(made, true);
    source.set(copy, made.outerHTML);
    const opened = [...old.querySelectorAll("details[open] > summary")].map(key);
    for (const one of copy.querySelectorAll("details > summary")) if (opened.includes(key(one))) one.parentElement.open = true;
    const scrolled = [...old.querySelectorAll(".wide")].map((one) => one.scrollLeft);
    old.replaceWith(copy);
    copy.querySelectorAll(".wide").forEach((one, i) => { one.scrollLeft = scrolled[i] ?? 0; });
    if (focus !== null) focusable(copy)[place].focus({preventScroll: true});
    return true;
  };
  const ask = async () => {
    stale = false;
    const begun = performance.now();
    const answer = await fetch(location.href).catch(() => null);
    fresh = answer?.ok && !answer.redirected ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    pause = Math.max(least, share * (performance.now() - begun));
  };
  // Returns whether something is left as it was because somebody uses it; it is tried again.
  const show = () => {
    const [olds, news] = [parts(document).filter((part) => source.has(part)), parts(fresh)];
    if (olds.length !== news.length || olds.some((old, i) => name(old) !== name(news[i]))) {
      // Another kind of page: a form more, a first night.
      if (olds.some((old) => isUsed(old) || old.contains(document.activeElement))) return true;
      location.reload();
      return false;
    }
    const left = olds.filter((old, i) => source.get(old) !== news[i].outerHTML && !replace(old, news[i]));
    document.dispatchEvent(new Event("drawn"));
    return left.length > 0;
  };
  const soon = () => {
    timer ??= setTimeout(async () => {
      if (stale) await ask();
      const left = fresh !== null && show();
      timer = null;
      if (stale || left) soon();
    }, pause);
  };
  // A browser opens six connections to a server at most: a page that nobody sees needs none.
  const follow = () => {
    stream?.close();
    if (document.hidden) return;
    stream = new EventSource("/changes?since=" + since);
    stream.addEventListener("changed", (message) => {
      since = JSON.parse(message.data).revision;
      stale = true;
      soon();
    });
    stream.addEventListener("problem", () => stream.close());
  };
  document.addEventListener("visibilitychange", follow);
  follow();
})();
