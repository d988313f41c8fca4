"use strict";
/* Conveniences; every page also works without script. */
(() => {
  const root = document.documentElement;
  const brand = document.querySelector(".brand");
  const to = (path) => { location.href = brand.href.replace(/\/$/, "") + path; };

  /* In a narrow window the links of the header scroll: show that of this page. */
  const own = document.querySelector(".top [aria-current]"), links = own?.closest("nav");
  if (links) links.scrollLeft = own.offsetLeft - links.offsetLeft - (links.clientWidth - own.offsetWidth) / 2;

  /* Theme: switched at once and stored in a cookie. */
  const themeForm = document.querySelector("[data-theme-form]");
  const themes = ["auto", "light", "dark"];
  if (themeForm) {
    const button = themeForm.querySelector("button");
    themeForm.addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = button.value;
      fetch(themeForm.action, { method: "POST", body: new URLSearchParams({ theme: chosen, after: "" }) });
      if (chosen === "auto") root.removeAttribute("data-theme"); else root.dataset.theme = chosen;
      document.querySelector("meta[name=color-scheme]").content = chosen === "auto" ? "light dark" : chosen;
      const next = themes[(themes.indexOf(chosen) + 1) % 3];
      button.value = next;
      button.title = `Theme: ${chosen}; switch to ${next}`;
      button.querySelector(".theme-name").textContent = chosen;
      button.querySelector(".visually-hidden").textContent = ` theme; switch to ${next}`;
    });
  }

  /* Explanations: on hover, on keyboard focus, or pinned by a click. */
  const cache = new Map();
  let box = null, owner = null, isPinned = false, waiting = 0;

  const close = (back) => {
    clearTimeout(waiting);
    if (!box) return;
    const was = owner;
    box.remove();
    was.removeAttribute("aria-describedby");
    box = owner = null;
    if (isPinned && back) (titleOf(was) ?? was).focus();
    isPinned = false;
  };

  const text = async (link) => {
    if (!cache.has(link.href)) {
      const address = new URL(link.href);
      address.searchParams.set("part", "1");
      const answer = await fetch(address, { headers: { accept: "text/html" } });
      const body = await answer.text();
      if (!answer.ok) return new DOMParser().parseFromString(body, "text/html").querySelector(".message")?.outerHTML ?? "";
      cache.set(link.href, body);
    }
    return cache.get(link.href);
  };

  /* A cell of a table with explained titles uses the explanation of its title. */
  const titleOf = (cell) => {
    const isOwn = cell.classList.contains("n") && cell.closest("table")?.matches("[data-explained]");
    return isOwn ? cell.closest("table").tHead.rows[0].cells[cell.cellIndex]?.querySelector("[data-explain]") : null;
  };
  const place = (from) => {
    const at = from.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, root.clientWidth - box.offsetWidth - 8));
    const below = at.bottom + 6 + box.offsetHeight < root.clientHeight || at.top < box.offsetHeight + 6;
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - box.offsetHeight - 6)}px`;
  };

  const open = async (link, keep, from) => {
    if (owner === from && (isPinned || !keep)) return;
    const html = await text(link).catch(() => "");
    if (!html) return;
    if (!keep && !from.matches(":hover, :focus-visible")) return;
    close(false);
    box = document.createElement("div");
    box.className = "popover";
    box.id = "explanation";
    box.tabIndex = -1;
    box.setAttribute("role", keep ? "dialog" : "tooltip");
    if (keep) box.setAttribute("aria-label", "Explanation of this number");
    box.innerHTML = html;
    document.body.append(box);
    owner = from;
    isPinned = keep;
    from.setAttribute("aria-describedby", box.id);
    place(from);
    box.addEventListener("mouseleave", () => { if (!isPinned) close(false); });
    if (keep) box.focus({ preventScroll: true });
  };

  const openSoon = ([link, from]) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (!isPinned) open(link, false, from); }, 220);
  };
  /* Return the link that explains the target of an event, and the element it explains. */
  const explanationAt = (event) => {
    const found = event.target instanceof Element ? event.target.closest("[data-explain], td") : null;
    const link = found?.matches("td") ? titleOf(found) : found;
    return link ? [link, found] : null;
  };
  document.addEventListener("mouseover", (event) => { const found = explanationAt(event); if (found) openSoon(found); });
  document.addEventListener("mouseout", (event) => {
    if (!explanationAt(event)) return;
    clearTimeout(waiting);
    setTimeout(() => { if (box && !isPinned && !box.matches(":hover") && !owner.matches(":hover, :focus-visible")) close(false); }, 200);
  });
  document.addEventListener("focusin", (event) => { const found = explanationAt(event); if (found && found[1].matches(":focus-visible")) openSoon(found); });
  document.addEventListener("focusout", (event) => { if (explanationAt(event) && box && !isPinned) close(false); });
  document.addEventListener("click", (event) => {
    const found = explanationAt(event);
    const isChosen = found?.[1].matches("td") && !getSelection().isCollapsed;
    if (found && !isChosen && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      open(found[0], true, found[1]);
    } else if (box && !box.contains(event.target)) close(false);
  });

  /* Tables: each can be saved as CSV, with numbers as they are and whole names. */
  const field = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const said = (cell) => cell.dataset.v ?? cell.querySelector(":scope > [title]")?.title ?? cell.innerText.trim().replace(/^–$/, "");
  const heading = (cell) => cell.innerText.replace(/[▲▼]/g, "").trim() + (cell.dataset.unit ? ` (${cell.dataset.unit})` : "");
  const save = (table) => {
    const head = [...table.tHead?.rows ?? []].map((row) => [...row.cells].map(heading));
    const body = [...table.tBodies].flatMap((one) => [...one.rows]).map((row) => [...row.cells].map(said));
    const csv = [...head, ...body].map((row) => row.map(field).join(",") + "\r\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    link.download = `${document.title.split(" · ")[0]}, ${table.caption?.innerText ?? "table"}.csv`.replace(/[\\/:*?"<>|]+/g, "_");
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const offer = (table) => {
    if (!table.tBodies[0]?.rows.length) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet save";
    button.textContent = "Save as CSV";
    button.setAttribute("aria-label", `Save as CSV: ${table.caption?.innerText ?? "table"}`);
    button.addEventListener("click", () => save(table));
    table.closest(".wide").after(button);
  };
  document.querySelectorAll("main .wide > table").forEach(offer);
  document.addEventListener("tableadded", (event) => offer(event.target));

  /* Keyboard shortcuts. */
  const keys = document.getElementById("keys");
  let before = "";
  const follow = (selector) => document.querySelector(selector)?.click();
  const actions = {
    "/": () => { const search = document.querySelector("input[type=search]"); if (search) { search.focus(); search.select(); } else to("/?focus=1"); },
    "?": () => keys.showModal(),
    t: () => themeForm?.requestSubmit(themeForm.querySelector("button")),
    n: () => follow("a[rel=next]"),
    p: () => follow("a[rel=prev]"),
    gr: () => to("/"),
    gu: () => to("/upload"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { close(true); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const action = actions[before + event.key] ?? actions[event.key];
    before = event.key === "g" ? "g" : "";
    if (!action) return;
    event.preventDefault();
    action();
  });
})();
