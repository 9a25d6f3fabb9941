// What a page of results can do beyond being read: a crosshair in charts, by pointer and by keyboard,
// series that can be hidden, logarithmic axes, definitions on hover, light and dark. Everything that is
// drawn or said is in the page already: this moves and hides it, and makes no text of its own but labels.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const svgOf = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };
  const live = document.getElementById("live");

  // Light and dark.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  // A chart: one of its drawings is on show. Its rows and their words are those of its table.
  const chart = (figure) => {
    const plot = figure.querySelector(".plot");
    const tip = figure.querySelector(".tip");
    const rows = all("tbody tr", figure).map((row) => ({
      head: row.cells[0].textContent,
      cells: [...row.cells].slice(1).map((cell) => cell.textContent),
    }));
    const heads = all("thead th", figure).slice(1).map((head) => head.textContent);
    const rowHead = figure.querySelector("thead th").textContent;
    const snap = plot.dataset.snap;
    let at = null;

    // Where each column's values lie in the drawing on show; read once for each drawing.
    const known = new Map();
    const drawing = () => {
      const svg = all("svg", plot).find((svg) => svg.getBoundingClientRect().width > 0);
      if (svg && !known.has(svg)) {
        const columns = all("[data-column]", svg).map((group) => ({
          group,
          place: Number(group.dataset.column),
          points: group.dataset.at.split(" ").map((pair) => (pair === "-" ? null : pair.split(",").map(Number))),
        }));
        known.set(svg, { svg, columns, area: svg.dataset.area.split(" ").map(Number) });
      }
      return svg && known.get(svg);
    };
    const shown = (drawn) => drawn.columns.filter((column) => !column.group.classList.contains("off"));

    const clear = () => {
      all(".cross", plot).forEach((cross) => cross.remove());
      tip.hidden = true;
      at = null;
    };

    const show = (row, speak) => {
      const drawn = drawing();
      if (!drawn || !rows.length) return;
      all(".cross", plot).forEach((cross) => cross.remove());
      at = Math.max(0, Math.min(rows.length - 1, row));
      const values = shown(drawn)
        .map((column) => ({ ...column, point: column.points[at], text: rows[at].cells[column.place] }))
        .filter((column) => column.point);
      const cross = svgOf("g", { class: "cross" });
      const [left, top, right, bottom] = drawn.area;
      if (values.length) {
        const [x, y] = values[0].point;
        const line = snap === "x" ? `M${x} ${top}V${bottom}` : `M${left} ${y}H${right}`;
        cross.append(svgOf("path", { d: line }));
        if (snap !== "y") {
          for (const { point } of values) cross.append(svgOf("circle", { cx: point[0], cy: point[1], r: 4 }));
        }
      }
      drawn.svg.append(cross);

      tip.replaceChildren();
      const head = document.createElement("strong");
      head.textContent = `${rowHead} ${rows[at].head}`;
      tip.append(head);
      const list = document.createElement("dl");
      for (const { group, place, text } of values) {
        const term = document.createElement("dt");
        const swatch = figure.querySelector(`.legend .${[...group.classList].find((name) => /^k\d/.test(name))} svg`);
        if (swatch) term.append(swatch.cloneNode(true));
        term.append(heads[place]);
        const value = document.createElement("dd");
        value.textContent = text;
        list.append(term, value);
      }
      tip.append(list);
      tip.hidden = false;
      const frame = drawn.svg.getBoundingClientRect();
      const scale = frame.width / drawn.svg.viewBox.baseVal.width;
      const [x, y] = values.length ? values[0].point : [left, top];
      const room = plot.clientWidth - tip.offsetWidth - 4;
      const beside = x * scale + 14 <= room ? x * scale + 14 : x * scale - tip.offsetWidth - 14;
      tip.style.left = `${Math.max(4, Math.min(room, beside))}px`;
      const height = snap === "x" ? top * scale : y * scale + 14;
      tip.style.top = `${Math.max(0, Math.min(frame.height - tip.offsetHeight, height))}px`;
      if (speak) {
        const said = values.map(({ place, text }) => `${heads[place]} ${text}`);
        live.textContent = `${rowHead} ${rows[at].head}: ${said.join("; ") || "no value"}`;
      }
    };

    const nearest = (event) => {
      const drawn = drawing();
      if (!drawn) return null;
      const frame = drawn.svg.getBoundingClientRect();
      const scale = frame.width / drawn.svg.viewBox.baseVal.width;
      const x = (event.clientX - frame.left) / scale;
      const y = (event.clientY - frame.top) / scale;
      let best = null;
      let least = Infinity;
      for (const { points } of shown(drawn)) {
        points.forEach((point, row) => {
          if (!point) return;
          const [dx, dy] = [point[0] - x, point[1] - y];
          const far = snap === "x" ? Math.abs(dx) : snap === "y" ? Math.abs(dy) : Math.hypot(dx, dy);
          if (far < least) [best, least] = [row, far];
        });
      }
      return best;
    };
    const point = (event) => {
      const row = nearest(event);
      if (row !== null) show(row, false);
    };
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch" && document.activeElement !== plot) clear();
    });

    // By keyboard. Only with this script is there anything to step through.
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-roledescription", "chart");
    plot.setAttribute("aria-labelledby", plot.dataset.label);
    plot.setAttribute("aria-describedby", "chart-keys");
    const start = Number(plot.dataset.start);
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) show(at ?? start, true); });
    plot.addEventListener("blur", clear);
    plot.addEventListener("keydown", (event) => {
      const [onward, back] = snap === "y" ? ["ArrowDown", "ArrowUp"] : ["ArrowUp", "ArrowDown"];
      const now = at ?? start;
      const steps = {
        ArrowRight: now + 1, [onward]: now + 1, ArrowLeft: now - 1, [back]: now - 1,
        PageDown: now + 10, PageUp: now - 10, Home: 0, End: rows.length - 1,
      };
      if (event.key === "Escape") {
        clear();
      } else if (event.key in steps && !event.altKey && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        show(at === null ? now : steps[event.key], true);
      }
    });

    const hide = (key, off) => {
      all(`svg.chart .k${key}`, plot).forEach((mark) => mark.classList.toggle("off", off));
      const button = figure.querySelector(`.legend .k${key} button`);
      if (button) button.setAttribute("aria-pressed", String(!off));
      if (at !== null) show(at, false);
    };
    all(".legend li", figure).forEach((item) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        hide(item.dataset.key, button.getAttribute("aria-pressed") === "true");
      });
    });

    const scales = all(".scales button", figure);
    if (scales.length) figure.querySelector(".scales").hidden = false;
    scales.forEach((button) => button.addEventListener("click", () => {
      figure.classList.toggle("log", button.dataset.scale === "log");
      scales.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      clear();
    }));
    return { figure, hide };
  };
  const charts = all("figure.chart-box").map(chart);

  // A run can be taken out of all charts that show several.
  all("[data-run]").forEach((box) => {
    box.closest(".run-switch").hidden = false;
    box.addEventListener("change", () => {
      charts.filter(({ figure }) => figure.dataset.runs !== undefined)
        .forEach(({ hide }) => hide(box.dataset.run, !box.checked));
    });
  });

  // Definitions appear on hover and on focus too; a press shows them without this script.
  const beside = (button, box) => {
    const frame = button.getBoundingClientRect();
    const left = Math.min(frame.left, root.clientWidth - box.offsetWidth - 8);
    const below = frame.bottom + 6;
    box.style.inset = "auto";
    box.style.margin = "0";
    const fits = below + box.offsetHeight <= root.clientHeight;
    box.style.left = `${Math.max(8, left)}px`;
    box.style.top = `${Math.max(8, fits ? below : frame.top - box.offsetHeight - 6)}px`;
  };
  all("button.term").forEach((button) => {
    const box = document.getElementById(button.getAttribute("popovertarget"));
    button.removeAttribute("popovertarget");
    let leaving;
    const open = () => {
      clearTimeout(leaving);
      if (!box.matches(":popover-open")) box.showPopover();
      beside(button, box);
    };
    const close = () => { if (box.matches(":popover-open")) box.hidePopover(); };
    const leave = () => { leaving = setTimeout(() => { if (document.activeElement !== button) close(); }, 120); };
    for (const kind of ["focus", "click", "pointerenter"]) button.addEventListener(kind, open);
    button.addEventListener("blur", close);
    for (const element of [button, box]) element.addEventListener("pointerleave", leave);
    box.addEventListener("pointerenter", () => clearTimeout(leaving));
  });
})();
