// The same question elsewhere: as a command line, in Python, as a file.

import { ownKeys } from "./batches.ts";
import { plain } from "./numbers.ts";
import type { Run } from "./state.ts";

export type Form = "command" | "python" | "toml" | "link";
export const FORMS: { id: Form; name: string }[] = [
  { id: "command", name: "Command line" },
  { id: "python", name: "Python" },
  { id: "toml", name: "TOML" },
  { id: "link", name: "Link" },
];

/** A link is made of the page's whole state, elsewhere. */
export function copyAs(form: Exclude<Form, "link">, run: Run, delta: number): string {
  const pairs: [string, string | number | boolean][] = [["noise_multiplier", run.noise]];
  if (run.sampling !== "full") pairs.push(["sample_rate", run.rate]);
  pairs.push(["steps", run.steps]);
  if (run.sampling !== "poisson") pairs.push(["sampling", run.sampling]);
  if (run.adjacency !== "add-remove") pairs.push(["adjacency", run.adjacency]);
  if (run.records > 0) pairs.push(["dataset_size", run.records]);
  pairs.push(...Object.entries(ownKeys(run)));
  const yes = form === "python" ? "True" : "true";
  const text = (value: string | number | boolean) => (typeof value === "number" ? plain(value) : value === true ? yes : `"${value}"`);
  switch (form) {
    case "command": {
      const flags = pairs.map(([key, value]) => {
        const flag = `--${key.replaceAll("_", "-")}`;
        return value === true ? flag : `${flag} ${typeof value === "number" ? plain(value) : value}`;
      });
      return ["dosimeter account", ...flags, `--delta ${plain(delta)}`].join(" \\\n    ");
    }
    case "python": {
      const fields = pairs.map(([key, value]) => `${key}=${text(value)}`);
      return `import dosimeter\n\nrun = dosimeter.Run(${fields.join(", ")})\nclaims = dosimeter.account(run, delta=${plain(delta)})\n`;
    }
    case "toml": {
      const entries = pairs.map(([key, value]) => `${key} = ${text(value)}`);
      return `# dosimeter account run.toml --delta ${plain(delta)}\n[run]\n${entries.join("\n")}\n`;
    }
  }
}

export async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
