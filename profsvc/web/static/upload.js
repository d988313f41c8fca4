"use strict";
/* Files are sent one after another as they are, with their progress; what the reader says is shown as it comes. */
(() => {
  const form = document.querySelector("form[data-upload]");
  const drop = form.querySelector("[data-drop]");
  const input = form.querySelector("input[type=file]");
  const results = document.querySelector("[data-results]");
  const most = Number(form.dataset.most);
  form.querySelector("[data-hint]").textContent = "Drop files here, or choose them. " + form.querySelector("[data-hint]").textContent;

  const put = (parent, tag, text, kind) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  };
  const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");

  const address = (file) => {
    const asked = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (typeof value === "string" && value) asked.append(name, value);
    asked.set("file_name", file.name);
    return `${form.dataset.upload}?${asked}`;
  };

  const send = (file, bar) => new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("POST", address(file));
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("content-type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) bar.value = event.loaded / event.total; });
    request.upload.addEventListener("load", () => { bar.removeAttribute("value"); });
    request.addEventListener("load", () => {
      try { done(JSON.parse(request.responseText)); } catch { done({ ok: false, error: { message: `the service answered ${request.status}` } }); }
    });
    request.addEventListener("error", () => done({ ok: false, error: { message: "the service cannot be reached; nothing of this file was stored" } }));
    request.send(file);
  });

  const refused = (item, why) => {
    item.querySelector(".state").textContent = "refused";
    item.querySelector(".state").className = "state bad";
    put(item, "p", why);
  };

  const stored = (item, said) => {
    const head = item.querySelector("p");
    item.querySelector(".state").textContent = said.known ? "was stored already" : "stored";
    item.querySelector(".state").className = "state good";
    head.append(` as ${said.format} in `);
    const link = put(head, "a", said.run);
    link.href = form.dataset.runs + said.run_id;
    const account = put(item, "p", `${number(said.lines)} lines: ${number(said.lines_stored)} stored, ${number(said.lines_skipped)} skipped, ${number(said.lines_rejected)} rejected`
      + (said.launches ? `; ${number(said.launches)} launches` : "") + (said.samples ? `; ${number(said.samples)} readings` : ""));
    if (said.lines_rejected) {
      account.append(" (");
      put(account, "a", "which").href = `${form.dataset.runs}${said.run_id}/rejects`;
      account.append(")");
    }
    if (said.message) put(item, "p", said.message, "soft");
    for (const warning of said.warnings ?? []) put(item, "p", warning, "warn");
  };

  const take = async (files) => {
    const button = form.querySelector("button.main");
    button.disabled = true;
    for (const file of files) {
      const item = put(results, "li");
      const head = put(item, "p");
      put(head, "b", file.name);
      head.append(": ");
      put(head, "span", "on its way", "state soft");
      if (file.size > most) { refused(item, `it has ${number(file.size)} bytes; ${number(most)} are taken`); continue; }
      const bar = put(item, "progress");
      bar.max = 1;
      bar.value = 0;
      bar.setAttribute("aria-label", `Progress of ${file.name}`);
      const said = await send(file, bar);
      bar.remove();
      if (said.ok) stored(item, said); else refused(item, said.error.message);
    }
    button.disabled = false;
    input.value = "";
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.files.length) take([...input.files]);
  });
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) take([...event.dataTransfer.files]);
  });
})();
