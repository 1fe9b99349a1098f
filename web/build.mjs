// Builds dist/ from src/. `node build.mjs --check` builds in memory and compares.
import { build } from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, "dist");
const check = process.argv.includes("--check");

const result = await build({
  absWorkingDir: root,
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome111", "firefox113", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "none",
  write: false,
});

const banner =
  "/*! Dosimeter's page, built from web/src. Contains Preact (MIT, Jason Miller) and " +
  "uPlot (MIT, Leon Sorokin). */\n";
const files = new Map(result.outputFiles.map((file) => [file.path.split(/[\\/]/).pop(), banner + file.text]));
for (const name of ["index.html", "icon.svg"]) {
  files.set(name, readFileSync(join(root, "src", name), "utf8"));
}

let different = 0;
mkdirSync(dist, { recursive: true });
for (const [name, text] of files) {
  const path = join(dist, name);
  if (check) {
    let found = null;
    try {
      found = readFileSync(path, "utf8");
    } catch {
      // Missing counts as different.
    }
    if (found !== text) {
      different += 1;
      console.error(`dist/${name} is not what src/ builds; run npm run build`);
    }
  } else {
    writeFileSync(path, text);
    console.log(`dist/${name} ${(text.length / 1024).toFixed(1)} KB`);
  }
}
process.exit(different === 0 ? 0 : 1);
