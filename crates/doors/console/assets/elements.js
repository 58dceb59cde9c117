// The elements of the console. Each page works without them.
"use strict";
(() => {
  const STEPS = [[60, "second"], [60, "minute"], [24, "hour"], [7, "day"], [4.35, "week"],
    [12, "month"], [Infinity, "year"]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

  // A time in words, with the exact one on hover.
  class NarthexTime extends HTMLElement {
    connectedCallback() {
      this.show();
      this.timer = setInterval(() => this.show(), 30000);
    }

    disconnectedCallback() {
      clearInterval(this.timer);
    }

    show() {
      const time = this.querySelector("time");
      if (!time || document.hidden) {
        return;
      }
      let away = (Date.parse(time.dateTime) - Date.now()) / 1000;
      if (Number.isNaN(away)) {
        return;
      }
      time.title = time.dateTime;
      for (const [size, unit] of STEPS) {
        if (Math.abs(away) < size) {
          time.textContent = unit === "second" && Math.abs(away) < 10
            ? "just now" : words.format(Math.round(away), unit);
          return;
        }
        away /= size;
      }
    }
  }

  // A button that copies the code in front of it.
  class NarthexCopy extends HTMLElement {
    connectedCallback() {
      this.show();
    }

    show() {
      if (!navigator.clipboard || this.querySelector("button")) {
        return;
      }
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button quiet";
      button.textContent = "Copy";
      const text = () => this.querySelector("code, pre").innerText;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text());
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      this.append(button);
    }
  }

  // A form whose button works once each of its fields has a text.
  class NarthexTyped extends HTMLElement {
    connectedCallback() {
      this.addEventListener("input", () => this.show());
      this.show();
    }

    show() {
      const button = this.querySelector("form button");
      const fields = [...this.querySelectorAll("input:not([type=hidden])")];
      if (button) {
        button.disabled = fields.some((field) => field.value === "");
        button.title = button.disabled ? "Type a value first" : "";
      }
    }
  }

  customElements.define("nx-typed", NarthexTyped);
  customElements.define("nx-time", NarthexTime);
  customElements.define("nx-copy", NarthexCopy);

  // An event brings elements as the daemon writes them.
  document.addEventListener("htmx:after:swap", () => {
    document.querySelectorAll("nx-time, nx-copy").forEach((one) => one.show());
  });

  const isTyping = (at) => at.closest("input, textarea, select, [contenteditable]") !== null;
  const closeMenus = (but) => document.querySelectorAll("details.menu[open]").forEach((menu) => {
    if (menu !== but) {
      menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey
      && !isTyping(event.target)) {
      event.preventDefault();
      document.getElementById("q")?.focus();
    }
    if (event.key === "Escape") {
      const open = event.target.closest("details.menu[open]");
      closeMenus(null);
      open?.querySelector("summary").focus();
    }
  });
  document.addEventListener("click", (event) => {
    closeMenus(event.target.closest("details.menu"));
  });
})();
