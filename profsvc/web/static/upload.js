"use strict";
/* Uploads files one after another, with progress, and shows the result of each. */
(() => {
  const form = document.querySelector("form[data-upload]");
  const drop = form.querySelector("[data-drop]");
  const input = form.querySelector("input[type=file]");
  const results = document.querySelector("[data-results]");
  const maxBytes = Number(form.dataset.maxBytes);
  form.querySelector("[data-hint]").textContent = "Drop files here, or choose them. " + form.querySelector("[data-hint]").textContent;

  const appendElement = (parent, tag, text, kind) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  };
  const number = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");

  const address = (file) => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (typeof value === "string" && value) query.append(name, value);
    query.set("file_name", file.name);
    return `${form.dataset.upload}?${query}`;
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
    request.addEventListener("error", () => done({ ok: false, error: { message: "service unreachable; this file was not stored" } }));
    request.send(file);
  });

  const showRejected = (item, reason) => {
    item.querySelector(".state").textContent = "rejected";
    item.querySelector(".state").className = "state bad";
    appendElement(item, "p", reason);
  };

  const showStored = (item, result) => {
    const head = item.querySelector("p");
    item.querySelector(".state").textContent = result.known ? "already stored" : "stored";
    item.querySelector(".state").className = "state good";
    head.append(` as ${result.format} in `);
    const link = appendElement(head, "a", result.run);
    link.href = form.dataset.runs + result.run_id;
    const counts = appendElement(item, "p", `${number(result.lines)} line${result.lines === 1 ? "" : "s"}: ${number(result.lines_stored)} stored, ${number(result.lines_skipped)} skipped, ${number(result.lines_rejected)} rejected`
      + (result.launches ? `; ${number(result.launches)} launches` : "") + (result.samples ? `; ${number(result.samples)} readings` : ""));
    if (result.lines_rejected) {
      counts.append(" (");
      appendElement(counts, "a", "details").href = `${form.dataset.runs}${result.run_id}/rejects`;
      counts.append(")");
    }
    if (result.message) appendElement(item, "p", result.message, "muted");
    for (const warning of result.warnings ?? []) appendElement(item, "p", warning, "warn");
  };

  const uploadAll = async (files) => {
    const button = form.querySelector("button.main");
    button.disabled = true;
    for (const file of files) {
      const item = appendElement(results, "li");
      const head = appendElement(item, "p");
      appendElement(head, "b", file.name);
      head.append(": ");
      appendElement(head, "span", "uploading", "state muted");
      if (file.size > maxBytes) { showRejected(item, `the file has ${number(file.size)} bytes; the limit is ${number(maxBytes)} bytes`); continue; }
      const bar = appendElement(item, "progress");
      bar.max = 1;
      bar.value = 0;
      bar.setAttribute("aria-label", `Progress of ${file.name}`);
      const result = await send(file, bar);
      bar.remove();
      if (result.ok) showStored(item, result); else showRejected(item, result.error.message);
    }
    button.disabled = false;
    input.value = "";
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.files.length) uploadAll([...input.files]);
  });
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) uploadAll([...event.dataTransfer.files]);
  });
})();
