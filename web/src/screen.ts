// A terminal in the page; loaded when the first one is opened.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import type { Process } from "./types";

export function openScreen(box: HTMLElement, process: Process, on: {
  typed: (text: string) => void; sized: (rows: number, columns: number) => void;
}) {
  const terminal = new Terminal({
    rows: process.has_pty ? process.rows : 24, cols: process.has_pty ? process.columns : 80, scrollback: 5000, fontSize: 13,
    convertEol: !process.has_pty, disableStdin: true, screenReaderMode: true,
    theme: { background: "#0d1110", foreground: "#e6ece9" },
    // A link in what a program prints could lead anywhere.
    linkHandler: { activate: () => {} },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(box);
  terminal.onData(on.typed);
  // Who has no mouse must be able to leave.
  terminal.attachCustomKeyEventHandler((event) => !(event.altKey && event.code.startsWith("Digit")));
  let mayFit = !process.has_pty;
  const resize = () => {
    if (!mayFit) return;
    fit.fit();
    on.sized(terminal.rows, terminal.cols);
  };
  const watched = new ResizeObserver(resize);
  watched.observe(box);
  return {
    write: (data: Uint8Array) => terminal.write(data),
    /** Who types has the program draw for this screen; who looks sees it as it is. */
    letType(may: boolean) {
      terminal.options.disableStdin = !may;
      mayFit = may || !process.has_pty;
      resize();
      if (may) terminal.focus();
    },
    close() { watched.disconnect(); terminal.dispose(); },
  };
}
