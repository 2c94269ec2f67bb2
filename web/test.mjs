// Run the tests in tests/: they are bundled, as they import TypeScript.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const made = await mkdtemp(join(tmpdir(), "console-tests-"));
try {
  const names = (await readdir(join(here, "tests"))).filter((name) => name.endsWith(".test.mjs"));
  await build({
    entryPoints: names.map((name) => join(here, "tests", name)), outdir: made, bundle: true, platform: "node", format: "esm",
    outExtension: { ".js": ".mjs" }, logLevel: "warning",
  });
  const ran = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...names.map((name) => join(made, name))], { stdio: "inherit" });
  process.exitCode = ran.status ?? 1;
} finally {
  await rm(made, { recursive: true });
}
