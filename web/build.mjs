// Build the console into the Python package: `node build.mjs [folder]`.
import { cp, mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../src/handrail/serve/console"));
const made = `${target}.${process.pid}.new`;

await mkdir(made, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx", style: "src/style.css" },
  outdir: join(made, "assets"),
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  legalComments: "linked",
  jsx: "automatic",
  jsxImportSource: "preact",
  // Pieces that are loaded when they are needed: terminals and plots.
  chunkNames: "[name]-[hash]",
  logLevel: "warning",
});
await cp(join(here, "index.html"), join(made, "index.html"));
await cp(join(here, "icon.svg"), join(made, "assets/icon.svg"));
// A server that runs meanwhile never sees half of it.
await rm(target, { recursive: true, force: true });
await rename(made, target);
